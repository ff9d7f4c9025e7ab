// A flame graph: the outermost function on top, as wide as its share of the waiting. A click on a
// box makes it as wide as the graph; a search colours boxes and adds up what they cover.

const kUnknownText = 'The stack was not taken: the wait ended without its lock being handed over, ' +
  'the rate of stacks was used up, or the unwinder was busy.';

class Flame {
  // `onZoom` is told which box was chosen.
  constructor(holder, onZoom) {
    this.holder = holder;
    this.onZoom = onZoom;
    this.root = null;
    this.zoomed = null;
    this.query = '';
    this.boxes = new Map(); // element to node
    holder.addEventListener('click', (event) => this.choose(event));
    holder.addEventListener('pointermove', (event) => this.explain(event));
    holder.addEventListener('pointerleave', () => hideTip());
    new ResizeObserver(() => this.refit()).observe(holder);
  }

  setTree(root) {
    this.root = root;
    this.zoomed = root;
    this.draw();
  }

  zoom(node) {
    this.zoomed = node;
    this.draw();
    this.onZoom(node);
  }

  // Returns how much of what is shown is inside boxes that match, in nanoseconds.
  search(query) {
    this.query = query.toLowerCase();
    this.draw();
    return this.query === '' ? 0 : this.coveredBy(this.zoomed);
  }

  // Names are cut to the width there is.
  refit() {
    const letters = this.holder.clientWidth / 7.3;
    if (this.root && Math.abs(letters - this.letters) > 2) this.draw();
  }

  matches(node) {
    if (this.query === '' || node.kind === 'root') return false;
    const frame = node.frame;
    const text = frame ? [node.label, frame.module, frame.file].join('\n') : node.label;
    return text.toLowerCase().includes(this.query);
  }

  coveredBy(node) {
    if (this.matches(node)) return node.ns;
    let sum = 0;
    for (const child of node.children.values()) sum += this.coveredBy(child);
    return sum;
  }

  draw() {
    this.boxes.clear();
    hideTip();
    const rows = element('div', { class: 'flame-rows' });
    if (!this.root || this.root.ns === 0) {
      this.holder.replaceChildren(element('p', { class: 'empty' }, 'No stack was taken of these waits.'));
      return;
    }
    this.deepest = 0;
    this.letters = this.holder.clientWidth / 7.3;
    for (let node = this.zoomed.parent; node; node = node.parent) this.add(rows, node, 0, 1, true);
    this.addBelow(rows, this.zoomed, 0, 1);
    rows.style.height = 20 * (this.deepest + 1) + 'px';
    this.holder.classList.toggle('searching', this.query !== '');
    this.holder.replaceChildren(rows);
  }

  // The box and those below it; what is too narrow to be seen is left out.
  addBelow(rows, node, left, width) {
    this.add(rows, node, left, width, false);
    const children = [...node.children.values()].sort((a, b) => b.ns - a.ns);
    let at = left;
    for (const child of children) {
      const share = width * child.ns / node.ns;
      if (share > 0.0006) this.addBelow(rows, child, at, share);
      at += share;
    }
  }

  add(rows, node, left, width, above) {
    const box = element('button', { class: 'frame ' + node.kind, type: 'button' });
    const label = shown(node.label);
    const room = width * this.letters;
    if (room > 2) box.textContent = this.fitting(node, room);
    else box.classList.add('thin');
    box.setAttribute('aria-label', `${label}: ${duration(node.ns)}, ${percent(node.ns, this.root.ns)}`);
    box.classList.toggle('above', above);
    box.classList.toggle('found', this.matches(node));
    box.style.setProperty('--tone', tone(node.label));
    box.style.left = 100 * left + '%';
    box.style.width = 100 * width + '%';
    box.style.top = 20 * node.depth + 'px';
    this.deepest = Math.max(this.deepest, node.depth);
    this.boxes.set(box, node);
    rows.append(box);
  }

  // As much of the name as tells most in the room there is.
  fitting(node, room) {
    if (node.kind !== 'frame') return shown(node.label);
    const name = brief(shown(node.label));
    return name.length <= room ? name : lastPart(name);
  }

  choose(event) {
    const node = this.boxes.get(event.target);
    if (node) this.zoom(node);
  }

  explain(event) {
    const node = this.boxes.get(event.target);
    if (!node) {
      hideTip();
      return;
    }
    const frame = node.frame;
    const lines = [element('strong', {}, shown(node.label))];
    if (frame) {
      const where = [frame.file ? shown(frame.file) + (frame.line ? ':' + frame.line : '') : null,
        frame.module ? shown(baseName(frame.module)) : null, frame.inlined ? 'inlined' : null];
      lines.push(element('p', {}, where.filter((part) => part !== null).join(', ')));
    }
    if (node.kind === 'unknown') lines.push(element('p', {}, kUnknownText));
    const share = percent(node.ns, this.root.ns);
    const within = this.zoomed === this.root ? '' : `, ${percent(node.ns, this.zoomed.ns)} of what is shown`;
    lines.push(element('p', {}, element('b', {}, duration(node.ns)), ` \u00b7 ${share}${within}`));
    lines.push(element('p', {}, `about ${count(node.waits)} waits, ${count(node.samples)} sampled`));
    showTip(event, lines);
  }
}

// ---- the box beside the pointer ----------------------------------------------------------

function showTip(event, lines) {
  const tip = byId('tip');
  tip.replaceChildren(...lines);
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  const room = { x: document.documentElement.clientWidth, y: window.innerHeight };
  const x = Math.max(8, Math.min(event.clientX + 14, room.x - box.width - 12));
  const below = event.clientY + 18;
  tip.style.left = x + 'px';
  tip.style.top = (below + box.height > room.y ? Math.max(8, event.clientY - box.height - 12) : below) + 'px';
}

function hideTip() {
  byId('tip').hidden = true;
}
