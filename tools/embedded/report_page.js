// The page: what is chosen, and what each part shows for it.

const state = { conditions: false, lock: null };
const waiters = new Flame(byId('waiters'), (node) => showBlockers(node));
const blockers = new Flame(byId('blockers'), () => showReset());
const table = new LockTable(byId('locks'), (lock) => {
  state.lock = lock;
  showLock();
});

function entries() {
  return state.conditions ? report.conditions : report.locks;
}

function chosen() {
  return state.lock ? [state.lock] : entries();
}

// ---- head --------------------------------------------------------------------------------

function fact(title, text) {
  return element('span', {}, title + ' ', element('b', {}, shown(text)));
}

function showHead() {
  const processes = report.processes;
  const first = processes[0];
  const title = processes.length === 1 ? `${first.comm}[${first.pid}]`
    : `${[...new Set(processes.map((process) => process.comm))].join(', ')}: ${processes.length} profiles`;
  byId('title').textContent = shown(title);
  document.title = shown(title) + ' \u2013 relock report';
  byId('command').textContent = shown(first.command || first.exe);
  const start = new Date(Math.min(...processes.map((process) => process.start_unix_ns)) / 1e6);
  const ended = processes.every((process) => process.finished);
  byId('facts').append(
    fact('first contention', start.toISOString().slice(0, 19).replace('T', ' ') + ' UTC'),
    fact('recorded', duration(report.totals.duration_ns) + (ended ? ', until the end' : ', then killed or still running')),
    fact('mutex', first.mutex), fact('spinlock', first.spin), fact('rwlock', first.rwlock),
    fact('waiting', first.wait));
}

function tile(title, value, remark) {
  return element('div', { class: 'tile' }, element('p', {}, title), element('strong', {}, value),
    element('p', {}, remark));
}

function showTiles() {
  const totals = report.totals;
  const longest = Math.max(0, ...report.locks.map((lock) => lock.max_wait_ns));
  const tiles = [tile('Waited for locks', duration(totals.wait_ns),
    `${totals.average_waiters.toFixed(2)} threads waiting on average`)];
  if (totals.share_lost !== null) {
    tiles.push(tile('Thread time lost', (100 * totals.share_lost).toFixed(1) + ' %',
      `of ${duration(totals.thread_ns)} of all threads`));
  }
  tiles.push(tile('Waits', shortCount(totals.waits), totals.acquisitions
    ? `of at least ${shortCount(totals.acquisitions)} acquisitions` : 'contended acquisitions'));
  tiles.push(tile('Longest wait', longest ? duration(longest) : '\u2013', 'for one lock'));
  tiles.push(tile('Locks', count(totals.locks), 'that were waited for'));
  tiles.push(tile('Waited for signals', duration(totals.condition_wait_ns),
    `${shortCount(totals.condition_waits)} waits on condition variables`));
  byId('tiles').append(...tiles);
}

function showNotes() {
  const notes = report.differences.map((text) => 'The merged profiles differ: ' + text);
  if (report.missing_modules.length) {
    notes.push(`No names from ${report.missing_modules.length} file(s), listed at the end: --binaries DIRECTORY helps.`);
  }
  if (report.processes.some((process) => !process.stacks_wanted)) notes.push('Recorded without stacks.');
  if (report.processes.some((process) => process.stacks_refused)) {
    notes.push('The program entered a seccomp filter that refuses what stacks need: from then on there are none.');
  }
  if (report.by === 'site') notes.push('One entry is a place that waits; its numbers are estimates from samples.');
  byId('notes').hidden = notes.length === 0;
  byId('notes').append(...notes.map((text) => element('p', {}, shown(text))));
}

// ---- what depends on the choice ----------------------------------------------------------

function showTable() {
  const totals = report.totals;
  table.setLocks(entries(), state.conditions
    ? { wait_ns: totals.condition_wait_ns, entries: totals.conditions }
    : { wait_ns: totals.wait_ns, entries: totals.locks }, state.conditions);
}

function showLock() {
  const locks = chosen();
  const byLock = state.lock === null;
  const all = state.conditions ? 'all condition variables' : 'all locks';
  const title = byLock ? all : `${state.lock.kind} ${state.lock.name}`;
  const scope = byId('scope');
  scope.replaceChildren('Shown below: ', element('b', { class: 'name' }, shown(title)));
  if (!byLock) {
    const button = element('button', { type: 'button', id: 'all-locks' }, 'Show ' + all);
    button.addEventListener('click', () => table.choose(state.lock));
    scope.append(button);
  }
  waiters.setTree(buildTree(waiterEntries(locks), title, byLock));
  byId('waiters-note').textContent = 'A click on a box zooms, and narrows the graph below to its waits.';
  byId('blockers-title').textContent = state.conditions ? 'Woken by whom' : 'Because of whom';
  showBlockers(null);
  showHistograms(locks);
  showDetails(locks);
  drawPairs(byId('pairs'), locks, byLock, state.conditions);
}

// The other side of the waits that pass through a box of the upper graph; null: of all.
function showBlockers(node) {
  const locks = chosen();
  const whole = node === null || node === waiters.root;
  const what = state.conditions ? 'who woke them' : 'who held the lock';
  const title = whole ? what : `${what}, waits through ${node.label}`;
  blockers.setTree(buildTree(blockerEntries(locks, whole ? null : node.sides), title, state.lock === null));
  byId('blockers-note').textContent = whole ? `Of all these waits: ${what}.`
    : `Of the waits through ${shown(node.label)}: ${what}.`;
  showReset();
  runSearch();
}

function showReset() {
  byId('reset').disabled = waiters.zoomed === waiters.root && blockers.zoomed === blockers.root;
}

function runSearch() {
  const query = byId('search').value.trim();
  const found = waiters.search(query);
  const foundBelow = blockers.search(query);
  byId('search-result').textContent = query === '' ? ''
    : `${percent(found, waiters.zoomed.ns)} above, ${percent(foundBelow, blockers.zoomed.ns)} below`;
}

function showHistograms(locks) {
  const noun = state.conditions ? 'waits for a signal' : 'waits';
  drawHistogram(byId('histogram'), sumHistograms(locks.map((lock) => lock.histogram)), noun, false);
  const held = locks.filter((lock) => lock.hold && lock.hold.samples);
  byId('hold-card').hidden = held.length === 0;
  drawHistogram(byId('hold'), sumHistograms(held.map((lock) => lock.hold.histogram)), 'sampled holds', true);
}

// Hold times of several locks: each mean stands for all acquisitions of its lock.
function sumHolds(locks) {
  const sum = { samples: 0, held: 0, count: 0, longest: 0 };
  for (const lock of locks) {
    if (!lock.hold || !lock.hold.samples) continue;
    sum.samples += lock.hold.samples;
    sum.held += lock.hold.held_ns;
    sum.count += lock.acquisitions;
    sum.longest = Math.max(sum.longest, lock.hold.max_ns);
  }
  if (sum.count === 0) sum.samples = 0;
  return sum;
}

function showDetails(locks) {
  const hold = sumHolds(locks);
  const sum = (key) => locks.reduce((total, lock) => total + lock[key], 0);
  const handOffs = locks.filter((lock) => lock.hand_offs);
  const within = handOffs.reduce((total, lock) => total + lock.hand_offs.within, 0);
  const across = handOffs.reduce((total, lock) => total + lock.hand_offs.across, 0);
  const waits = sum('waits');
  const acquisitions = sum('acquisitions');
  byId('details').replaceChildren(...definitions([
    ['Waited', duration(sum('wait_ns'))],
    ['Waits', count(waits)],
    ['Mean wait', duration(waits ? sum('wait_ns') / waits : 0)],
    ['Acquisitions', acquisitions ? 'at least ' + count(acquisitions) : null],
    ['Had to wait', acquisitions >= waits && acquisitions ? percent(waits, acquisitions) : null],
    ['Waits with stacks', count(sum('samples'))],
    ['Timed out', count(sum('timeouts'))],
    ['Cancelled', sum('cancelled') ? count(sum('cancelled')) : null],
    ['Failed trylocks', state.conditions ? null : count(sum('try_failures'))],
    ['Still waiting at the end', count(sum('under_way'))],
    ['Handed on within a NUMA node', within + across ? count(within) : null],
    ['Handed on to another node', within + across ? count(across) : null],
    ['Held, mean', hold.samples ? duration(hold.held / hold.count) : null],
    ['Held, longest sampled', hold.samples ? duration(hold.longest) : null],
    ['Held in total, about', hold.samples ? duration(hold.held) : null],
    ['Objects', count(sum('objects'))],
  ]));
}

// ---- the recording -----------------------------------------------------------------------

function recordingRows() {
  const rows = report.processes.flatMap((process) => [
    ['profile', process.file],
    ['program', `${process.exe}, process ${process.pid}`],
    ['samples', `${count(process.samples)} of ${count(process.samples + process.waits_unsampled)} waits, ` +
      `${count(process.stacks_taken)} stacks, at most ${count(process.samples_per_s)} stacks per second`],
  ]);
  rows.push(['counts', 'counts and times of locks are exact; shares of stacks are estimates from samples']);
  const dropped = Object.entries(report.dropped).filter(([, number]) => number > 0)
    .map(([name, number]) => `${count(number)} ${name.replaceAll('_', ' ')}`);
  rows.push(['not recorded', dropped.length ? dropped.join(', ') : 'nothing was dropped']);
  for (const module of report.missing_modules) {
    rows.push(['no names from', `${module.path}: ${module.reason}` + (module.build_id ? ` (build id ${module.build_id})` : '')]);
  }
  for (const path of report.modules_without_lines || []) {
    rows.push(['no lines from', `${path}: it has no debug information`]);
  }
  return rows;
}

function showRecording() {
  const holder = byId('recording');
  holder.className = 'recording';
  holder.append(element('table', {}, element('tbody', {}, ...recordingRows().map(([title, text]) =>
    element('tr', {}, element('th', { scope: 'row' }, title), element('td', {}, shown(text)))))));
}

// ---- controls ----------------------------------------------------------------------------

function isDark() {
  const theme = document.documentElement.dataset.theme;
  return theme ? theme === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
}

function showThemeButton() {
  byId('theme').textContent = isDark() ? 'Light' : 'Dark';
}

function switchTheme() {
  document.documentElement.dataset.theme = isDark() ? 'light' : 'dark';
  showThemeButton();
}

function switchKind(conditions) {
  state.conditions = conditions;
  state.lock = null;
  byId('show-locks').setAttribute('aria-pressed', String(!conditions));
  byId('show-conditions').setAttribute('aria-pressed', String(conditions));
  showTable();
  showLock();
}

function download() {
  const url = URL.createObjectURL(new Blob([JSON.stringify(report, null, 2)], { type: 'application/json' }));
  element('a', { href: url, download: 'relock-report.json' }).click();
  URL.revokeObjectURL(url);
}

function resetZoom() {
  waiters.zoomed = waiters.root;
  waiters.draw();
  showBlockers(null);
}

function onKey(event) {
  const typing = event.target instanceof HTMLInputElement;
  if (event.key === '/' && !typing) {
    event.preventDefault();
    byId('search').focus();
  } else if (event.key === 'Escape') {
    if (typing) event.target.value = '';
    table.setFilter(byId('table-filter').value);
    if (typing) runSearch();
    else resetZoom();
  }
}

byId('theme').addEventListener('click', switchTheme);
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', showThemeButton);
byId('show-locks').addEventListener('click', () => switchKind(false));
byId('show-conditions').addEventListener('click', () => switchKind(true));
byId('table-filter').addEventListener('input', (event) => table.setFilter(event.target.value));
byId('search').addEventListener('input', runSearch);
byId('reset').addEventListener('click', resetZoom);
byId('download').addEventListener('click', download);
document.addEventListener('keydown', onKey);
document.addEventListener('scroll', hideTip, { passive: true });

showThemeButton();
showHead();
showTiles();
showNotes();
showRecording();
switchKind(report.locks.length === 0 && report.conditions.length > 0);
