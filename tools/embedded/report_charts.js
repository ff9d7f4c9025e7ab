// Histograms of times, and the lists beside them.

// Bucket b holds times from 2^b to 2^(b+1)-1 ns.
function bucketText(bucket) {
  return `${duration(bucket === 0 ? 0 : 2 ** bucket)} to ${duration(2 ** (bucket + 1))}`;
}

// How many there are of each length, and how much of the time they make up: each counted with the
// middle of its bucket, so the second is an estimate.
function drawHistogram(holder, histogram, noun, hold) {
  const total = histogram.reduce((sum, value) => sum + value, 0);
  if (total === 0) {
    holder.replaceChildren(element('p', { class: 'empty' }, `No ${noun} to show.`));
    return;
  }
  const times = histogram.map((value, bucket) => value * 1.5 * 2 ** bucket);
  const time = times.reduce((sum, value) => sum + value, 0);
  const first = Math.max(0, histogram.findIndex((value) => value > 0) - 1);
  const last = Math.min(histogram.length - 1, histogram.findLastIndex((value) => value > 0) + 1);
  const most = Math.max(...histogram.map((value) => value / total), ...times.map((value) => value / time));
  const bars = element('div', { class: 'bars' });
  const axis = element('div', { class: 'axis', 'aria-hidden': 'true' });
  const every = Math.ceil((last - first + 1) / 7);
  for (let bucket = first; bucket <= last; bucket += 1) {
    bars.append(histogramBucket(bucket, histogram[bucket], total, times[bucket], time, most, noun));
    axis.append(element('span', {}, (bucket - first) % every === 0 ? duration(2 ** bucket) : ''));
  }
  const median = medianBucket(histogram, total);
  holder.replaceChildren(element('div', { class: 'chart' + (hold ? ' hold' : '') },
    element('div', { class: 'legend' }, element('span', {}, noun), element('span', {}, 'their time, estimated'),
      element('em', {}, `half under ${duration(2 ** (median + 1))}`)),
    bars, axis));
}

function histogramBucket(bucket, value, total, time, allTime, most, noun) {
  const bars = [value / total, time / allTime].map((share) => {
    const bar = element('i');
    bar.style.height = share > 0 ? Math.max(1, 100 * share / most) + '%' : '0';
    return bar;
  });
  const made = element('div', { class: 'bucket' }, ...bars);
  made.setAttribute('aria-label', `${bucketText(bucket)}: ${count(value)} ${noun}`);
  made.addEventListener('pointermove', (event) => showTip(event, [
    element('strong', {}, bucketText(bucket)),
    element('p', {}, element('b', {}, `${count(value)} ${noun}`), ` \u00b7 ${percent(value, total)}`),
    element('p', {}, `about ${percent(time, allTime)} of their time`)]));
  made.addEventListener('pointerleave', hideTip);
  return made;
}

function medianBucket(histogram, total) {
  let seen = 0;
  return histogram.findIndex((value) => {
    seen += value;
    return seen * 2 >= total;
  });
}

// [[title, text]...] as a list of definitions; rows without a text are left out.
function definitions(rows) {
  return rows.filter(([, text]) => text !== null && text !== undefined)
    .flatMap(([title, text]) => [element('dt', {}, title), element('dd', {}, text)]);
}

function stackList(stack) {
  const frames = framesOf(stack).reverse();
  if (frames.length === 0) return element('ol', { class: 'stack' }, element('li', { title: kUnknownText }, 'no stack known'));
  return element('ol', { class: 'stack' }, ...frames.map((frame) => element('li', { title: shown(frame.name) },
    brief(shown(frame.name)), element('span', {}, shown(place(frame)) + (frame.inlined ? ', inlined' : '')))));
}

// The pairs of stacks that cost most, first of all those whose sides are both known.
function drawPairs(holder, locks, withNames, conditions) {
  const all = locks.flatMap((lock) => lock.pairs.map((pair) => ({ lock, ...pair })))
    .sort((a, b) => b.ns - a.ns);
  const total = all.reduce((sum, pair) => sum + pair.ns, 0);
  const whole = all.filter((pair) => pair.waiter !== null && pair.blocker !== null);
  const half = all.filter((pair) => pair.waiter === null || pair.blocker === null);
  const kept = whole.concat(half).slice(0, 6);
  if (kept.length === 0) {
    holder.replaceChildren(element('p', { class: 'empty' }, 'No stack was taken of these waits.'));
    return;
  }
  const unknown = half.reduce((sum, pair) => sum + pair.ns, 0);
  holder.replaceChildren(...kept.map((pair) => pairArticle(pair, total, withNames, conditions)));
  if (unknown > 0) {
    holder.append(element('p', { class: 'rest', title: kUnknownText },
      `Of ${percent(unknown, total)} of the waiting one side is not known.`));
  }
}

function pairArticle(pair, total, withNames, conditions) {
  const what = withNames ? ` for ${pair.lock.kind} ${brief(shown(pair.lock.name))}` : '';
  return element('article', { class: 'pair' },
    element('div', { class: 'pair-head' },
      element('strong', {}, percent(pair.ns, total)),
      element('span', {}, `${duration(pair.ns)}, about ${count(pair.waits)} waits${what}`)),
    element('div', { class: 'pair-sides' },
      element('div', { class: 'side' }, element('h3', {}, 'waits in'), stackList(pair.waiter)),
      element('div', { class: 'side blocker' },
        element('h3', {}, conditions ? 'woken by' : 'because of'), stackList(pair.blocker))));
}
