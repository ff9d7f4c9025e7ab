'use strict';
// The report's numbers: how they read, and the trees that the graphs draw. Strings come from the
// program and its files; they reach the page as text only, never as markup.

const report = JSON.parse(document.getElementById('report-data').textContent);

// ---- text --------------------------------------------------------------------------------

// Characters that would not show, or would turn the direction of writing, are shown by number.
function shown(text) {
  return String(text).replace(
    /[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g,
    (c) => '\\u' + c.charCodeAt(0).toString(16).padStart(4, '0'));
}

// Three digits and a unit: 1.75 ms.
function duration(ns) {
  const units = ['ns', '\u00b5s', 'ms', 's'];
  let value = ns;
  let unit = 0;
  while (unit + 1 < units.length && value >= 999.5) {
    value /= 1000;
    unit += 1;
  }
  if (unit === 3 && value >= 999.5) return Math.round(value).toLocaleString('en') + ' s';
  const digits = unit === 0 ? 0 : value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
  return value.toFixed(digits) + ' ' + units[unit];
}

function count(number) {
  return Number(number).toLocaleString('en');
}

// At most five characters: 12,345 or 1.23M.
function shortCount(number) {
  if (number < 100000) return count(number);
  const units = ['k', 'M', 'G', 'T', 'P', 'E'];
  let value = number / 1000;
  let unit = 0;
  while (unit + 1 < units.length && value >= 999.5) {
    value /= 1000;
    unit += 1;
  }
  return value.toFixed(value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2) + units[unit];
}

function percent(part, whole) {
  if (!whole) return '0 %';
  const share = 100 * part / whole;
  return (share > 0 && share < 0.05 ? '<0.1' : share.toFixed(1)) + ' %';
}

function baseName(path) {
  return path === null ? '' : path.slice(path.lastIndexOf('/') + 1);
}

// "cache.cpp:120", else the module's name.
function place(frame) {
  if (frame.file) return baseName(frame.file) + (frame.line ? ':' + frame.line : '');
  return baseName(frame.module);
}

// Without what stands inside the outermost brackets of one kind.
function emptied(text, open, close) {
  let depth = 0;
  let result = '';
  for (const c of text) {
    if (c === close && depth > 0) depth -= 1;
    if (depth === 0) result += c;
    if (c === open) {
      if (depth === 0) result += '\u2026';
      depth += 1;
    }
  }
  return depth === 0 ? result : text;
}

// A long name without its parameters: cache::Shard::Lookup(…) instead of five lines. What is not a
// parameter list or a template's arguments stays: "(anonymous namespace)", operators.
function brief(name) {
  if (name.length <= 48 || /operator[<>(-]/.test(name)) return name;
  const kept = name.replaceAll('(anonymous namespace)', '{anonymous}').replaceAll('()', '\u0001');
  const short = emptied(kept, '(', ')');
  const shortest = short.length <= 60 ? short : emptied(short, '<', '>');
  return shortest.replaceAll('\u0001', '()').replaceAll('{anonymous}', '(anonymous namespace)');
}

// The last part of a name, for a box that has no room for the others.
function lastPart(name) {
  const end = name.search(/[(<]/);
  const start = name.slice(0, end < 0 ? name.length : end).lastIndexOf('::');
  return start < 0 ? name : name.slice(start + 2);
}

// A number from 0 to 1 that stays with a text.
function tone(text) {
  let hash = 2166136261;
  for (let i = 0; i < text.length; i += 1) {
    hash = Math.imul(hash ^ text.charCodeAt(i), 16777619);
  }
  return (hash >>> 8) % 1000 / 1000;
}

// ---- elements ----------------------------------------------------------------------------

// An element with text and children; undefined ones are left out.
function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === 'class') made.className = value;
    else if (name in made && typeof value !== 'string') made[name] = value;
    else made.setAttribute(name, value);
  }
  made.append(...children.filter((child) => child !== undefined && child !== null));
  return made;
}

function byId(id) {
  return document.getElementById(id);
}

// ---- waits -------------------------------------------------------------------------------

// The frames of a stack, outermost first.
function framesOf(stack) {
  if (stack === null) return [];
  return report.stacks[stack].map((index) => report.frames[index]).reverse();
}

function frameKey(frame) {
  return [frame.name, frame.module, frame.file, frame.line].join('\u0000');
}

// One box of a flame graph. `sides` holds what passes through it, as "lock/stack".
function makeNode(parent, kind, label, frame) {
  return {
    parent, kind, label, frame,
    depth: parent ? parent.depth + 1 : 0,
    ns: 0, waits: 0, samples: 0,
    children: new Map(),
    sides: new Set(),
  };
}

function childOf(parent, key, make) {
  let child = parent.children.get(key);
  if (!child) {
    child = make();
    parent.children.set(key, child);
  }
  return child;
}

// The tree of a side of waits. `entries`: {lock, stack, ns, waits, samples}; each lock gets a box
// of its own when `byLock` says so.
function buildTree(entries, title, byLock) {
  const root = makeNode(null, 'root', title, null);
  for (const entry of entries) {
    const path = [root];
    if (byLock) {
      path.push(childOf(root, 'lock ' + entry.lock.id,
        () => makeNode(root, 'lock', entry.lock.kind + ' ' + entry.lock.name, null)));
    }
    const frames = framesOf(entry.stack);
    if (frames.length === 0) {
      const parent = path[path.length - 1];
      path.push(childOf(parent, 'unknown',
        () => makeNode(parent, 'unknown', 'no stack known', null)));
    }
    for (const frame of frames) {
      const parent = path[path.length - 1];
      path.push(childOf(parent, frameKey(frame), () => makeNode(parent, 'frame', frame.name, frame)));
    }
    for (const node of path) {
      node.ns += entry.ns;
      node.waits += entry.waits;
      node.samples += entry.samples;
      node.sides.add(entry.lock.id + '/' + entry.stack);
    }
  }
  return root;
}

function waiterEntries(locks) {
  return locks.flatMap((lock) => lock.waiters.map((waiter) => ({ lock, ...waiter })));
}

// Who held the locks during the waits that pass through `sides`; all waits when that is null.
function blockerEntries(locks, sides) {
  return locks.flatMap((lock) => lock.pairs
    .filter((pair) => sides === null || sides.has(lock.id + '/' + pair.waiter))
    .map((pair) => ({ lock, stack: pair.blocker, ns: pair.ns, waits: pair.waits, samples: pair.samples })));
}

// Sums of a histogram over several locks.
function sumHistograms(histograms) {
  const sum = [];
  for (const histogram of histograms) {
    histogram.forEach((value, bucket) => { sum[bucket] = (sum[bucket] || 0) + value; });
  }
  return sum;
}
