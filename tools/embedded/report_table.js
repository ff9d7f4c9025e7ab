// The table of locks: sorted by any column, filtered by name; a row chooses its lock.

const kRowsShown = 100;

function meanWait(lock) {
  return lock.waits ? lock.wait_ns / lock.waits : 0;
}

function meanHold(lock) {
  return lock.hold && lock.hold.samples ? lock.hold.mean_ns : 0;
}

// The histogram in small. Heights go by the square root: the few long waits matter, too.
function spark(lock) {
  const histogram = lock.histogram;
  const most = Math.sqrt(Math.max(...histogram, 1));
  const first = histogram.findIndex((value) => value > 0);
  const last = histogram.findLastIndex((value) => value > 0);
  const bars = first < 0 ? [] : histogram.slice(first, last + 1);
  return element('span', { class: 'spark', 'aria-hidden': 'true' }, ...bars.map((value) => {
    const bar = element('i');
    bar.style.height = value ? Math.max(8, 100 * Math.sqrt(value) / most) + '%' : '1px';
    return bar;
  }));
}

function lockCell(lock) {
  const second = [lock.place, lock.address].filter((part) => part).map(shown);
  if (lock.objects > 1) second.push(count(lock.objects) + ' objects');
  return element('td', { class: 'text', title: shown(lock.name) },
    element('span', { class: 'name' }, element('span', { class: 'kind' }, lock.kind), brief(shown(lock.name))),
    second.length ? element('span', { class: 'place' }, second.join(' \u00b7 ')) : null);
}

function shareCell(lock, totals) {
  const bar = element('i');
  bar.style.width = (totals.wait_ns ? 100 * lock.wait_ns / totals.wait_ns : 0) + '%';
  return element('td', {}, percent(lock.wait_ns, totals.wait_ns), element('span', { class: 'bar' }, bar));
}

function textCell(text, faint) {
  return element('td', faint ? { class: 'faint' } : {}, text);
}

// Each column: its title, what it sorts by, and its cell.
const kColumns = [
  { id: 'name', title: 'Lock', text: true, value: (lock) => lock.name.toLowerCase(), cell: lockCell },
  { id: 'wait_ns', title: 'Waited', value: (lock) => lock.wait_ns, cell: (lock) => textCell(duration(lock.wait_ns)) },
  { id: 'share', title: 'Share', value: (lock) => lock.wait_ns, cell: shareCell },
  { id: 'waits', title: 'Waits', value: (lock) => lock.waits, cell: (lock) => textCell(shortCount(lock.waits)) },
  { id: 'mean', title: 'Mean', value: meanWait, cell: (lock) => textCell(duration(meanWait(lock))) },
  { id: 'max', title: 'Longest', value: (lock) => lock.max_wait_ns,
    cell: (lock) => lock.exact ? textCell(duration(lock.max_wait_ns)) : textCell('\u2013', true) },
  { id: 'acquisitions', title: 'Acquired', value: (lock) => lock.acquisitions,
    cell: (lock) => lock.acquisitions ? textCell('\u2265 ' + shortCount(lock.acquisitions)) : textCell('\u2013', true) },
  { id: 'hold', title: 'Held, mean', value: meanHold,
    cell: (lock) => lock.hold && lock.hold.samples ? textCell(duration(meanHold(lock))) : textCell('\u2013', true) },
  { id: 'spread', title: 'Spread', value: (lock) => lock.max_wait_ns / (meanWait(lock) || 1),
    cell: (lock) => element('td', {}, spark(lock)) },
];

class LockTable {
  constructor(table, onChoose) {
    this.table = table;
    this.onChoose = onChoose;
    this.sort = { id: 'wait_ns', descending: true };
    this.filter = '';
    this.all = false;
    this.chosen = null;
  }

  setLocks(locks, totals, conditions) {
    this.locks = locks;
    this.totals = totals;
    this.columns = kColumns.filter((column) => !(conditions && (column.id === 'acquisitions' || column.id === 'hold')))
      .filter((column) => column.id !== 'hold' || locks.some((lock) => lock.hold && lock.hold.samples));
    this.noun = conditions ? 'Condition variable' : 'Lock';
    this.chosen = null;
    this.all = false;
    this.draw();
  }

  setFilter(text) {
    this.filter = text.toLowerCase();
    this.draw();
  }

  choose(lock) {
    this.chosen = this.chosen === lock ? null : lock;
    this.draw();
    this.onChoose(this.chosen);
  }

  sortBy(column) {
    const same = this.sort.id === column.id;
    this.sort = { id: column.id, descending: same ? !this.sort.descending : !column.text };
    this.draw();
  }

  sorted() {
    const column = this.columns.find((known) => known.id === this.sort.id) || kColumns[1];
    const sign = this.sort.descending ? -1 : 1;
    return this.locks
      .filter((lock) => `${lock.kind} ${lock.name} ${lock.place || ''}`.toLowerCase().includes(this.filter))
      .sort((a, b) => {
        const left = column.value(a);
        const right = column.value(b);
        return left < right ? -sign : left > right ? sign : b.wait_ns - a.wait_ns;
      });
  }

  draw() {
    const locks = this.sorted();
    const visible = this.all ? locks : locks.slice(0, kRowsShown);
    const body = element('tbody', {}, ...visible.map((lock) => this.row(lock)));
    if (locks.length === 0) {
      const what = this.locks.length ? 'Nothing of that name.' : `No thread waited for a ${this.noun.toLowerCase()}.`;
      body.append(element('tr', {}, element('td', { class: 'text empty', colSpan: this.columns.length }, what)));
    }
    this.table.replaceChildren(this.head(), body);
    this.drawRest(locks.length - visible.length);
  }

  head() {
    const cells = this.columns.map((column) => {
      const button = element('button', { type: 'button', 'data-column': column.id },
        column.id === 'name' ? this.noun : column.title);
      button.addEventListener('click', () => {
        this.sortBy(column);
        this.table.querySelector(`button[data-column="${column.id}"]`).focus();
      });
      const cell = element('th', { scope: 'col', class: column.text ? 'text' : '' }, button);
      if (column.id === this.sort.id) {
        cell.setAttribute('aria-sort', this.sort.descending ? 'descending' : 'ascending');
      }
      return cell;
    });
    return element('thead', {}, element('tr', {}, ...cells));
  }

  row(lock) {
    const row = element('tr', { tabIndex: 0, 'aria-selected': String(lock === this.chosen), 'data-lock': String(lock.id) },
      ...this.columns.map((column) => column.cell(lock, this.totals)));
    row.addEventListener('click', () => this.choose(lock));
    row.addEventListener('keydown', (event) => {
      if (event.key !== 'Enter' && event.key !== ' ') return;
      event.preventDefault();
      this.choose(lock);
      this.table.querySelector(`tr[data-lock="${lock.id}"]`).focus();
    });
    return row;
  }

  drawRest(hidden) {
    const rest = byId('table-rest');
    const left = this.totals.entries - this.locks.length;
    rest.hidden = hidden === 0 && left <= 0;
    rest.replaceChildren();
    if (hidden > 0) {
      const button = element('button', { type: 'button' }, `Show ${count(hidden)} more`);
      button.addEventListener('click', () => { this.all = true; this.draw(); });
      rest.append(button);
    }
    if (left > 0) rest.append(` ${count(left)} more were left out of this report (--top).`);
  }
}
