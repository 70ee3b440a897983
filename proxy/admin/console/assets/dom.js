// The document is changed in place: a text or an attribute that stays the same is not touched, so that the reader's focus, selection and
// screen reader are left alone. Nothing here takes markup as text.

const space = 'http://www.w3.org/2000/svg';

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
    else attr(node, name, value);
  }
  for (const child of children.flat(Infinity)) {
    if (child !== null && child !== undefined && child !== false) node.append(child);
  }
  return node;
}

// h makes an element of HTML; a name that begins with "on" is a listener, any other an attribute.
export const h = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);

// s makes an element of SVG.
export const s = (tag, attributes, ...children) => fill(document.createElementNS(space, tag), attributes, children);

// attr sets an attribute; false, null and undefined take it away, true leaves it empty.
export function attr(node, name, value) {
  if (value === false || value === null || value === undefined) {
    if (node.hasAttribute(name)) node.removeAttribute(name);
    return;
  }
  const text = value === true ? '' : String(value);
  if (node.getAttribute(name) !== text) node.setAttribute(name, text);
}

// put shows a text in a node that holds nothing else. The text node stays the same one: a selection in it survives.
export function put(node, text) {
  const value = String(text ?? '');
  const only = node.firstChild;
  if (only && only.nodeType === Node.TEXT_NODE && !only.nextSibling) {
    if (only.data !== value) only.data = value;
  } else if (node.textContent !== value || only) {
    node.replaceChildren(value);
  }
}

// show hides a node or brings it back.
export function show(node, visible) {
  if (node.hidden === visible) node.hidden = !visible;
}

function place(parent, node, before) {
  if (node.parentNode === parent && typeof parent.moveBefore === 'function') parent.moveBefore(node, before);
  else parent.insertBefore(node, before);
}

// keyed makes the children of parent those of items, in their order: made once for each key, then updated. A child that has the focus
// keeps it when it moves.
export function keyed(parent, items, key, make, update) {
  const known = parent.known ??= new Map();
  const focused = parent.contains(document.activeElement) ? document.activeElement : null;
  const wanted = new Set(items.map(key));
  for (const [name, node] of known) {
    if (!wanted.has(name)) {
      node.remove();
      known.delete(name);
    }
  }
  let at = parent.firstElementChild;
  for (const item of items) {
    const name = key(item);
    let node = known.get(name);
    if (!node) known.set(name, node = make(item));
    if (node === at) at = at.nextElementSibling;
    else place(parent, node, at);
    update(node, item);
  }
  if (focused && focused !== document.activeElement && parent.contains(focused)) focused.focus({ preventScroll: true });
}

// value puts a value into a control, unless the reader is at it.
export function value(control, text) {
  const next = String(text ?? '');
  if (control.value !== next && document.activeElement !== control) control.value = next;
}

let serial = 0;

// fresh returns an id that the document does not have yet.
export const fresh = name => `${name}-${++serial}`;

const ears = () => document.getElementById('said');
let silence = 0;

// say lets a screen reader speak, politely. The same sentence twice is heard twice.
export function say(text) {
  clearTimeout(silence);
  put(ears(), '');
  silence = setTimeout(() => put(ears(), text), 60);
}
