// Wall-clock time in IANA zones, by Intl alone.

const made = new Map();

function parts(zone) {
  if (!made.has(zone)) {
    made.set(zone, new Intl.DateTimeFormat('en-US', { timeZone: zone, hourCycle: 'h23', year: 'numeric', month: 'numeric', day: 'numeric', hour: 'numeric', minute: 'numeric', second: 'numeric' }));
  }
  return made.get(zone);
}

// own is the zone of this browser.
export const own = () => Intl.DateTimeFormat().resolvedOptions().timeZone || 'UTC';

// known says whether the browser has a zone's rules.
export function known(zone) {
  try {
    parts(zone);
    return true;
  } catch {
    return false;
  }
}

// wall is a moment (milliseconds) as the clock of a zone shows it, itself as milliseconds as if it were UTC.
export function wall(at, zone) {
  const found = Object.fromEntries(parts(zone).formatToParts(at).map(one => [one.type, Number(one.value)]));
  return Date.UTC(found.year, found.month - 1, found.day, found.hour, found.minute, found.second) + ((at % 1000) + 1000) % 1000;
}

const day = 86400000;

// monday is the Monday, 00:00, of the week that a moment is in, as a wall time of the zone; plus that many days.
export function monday(at, zone, plus = 0) {
  const midnight = Math.floor(wall(at, zone) / day) * day;
  const past = (new Date(midnight).getUTCDay() + 6) % 7;
  return midnight - past * day + plus * day;
}

const names = ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'];

const minutes = text => {
  const [hour, minute] = text.split(':').map(Number);
  return hour * 60 + minute;
};

// eras are the stretches of constant offset between two moments: [from, to, offset].
function eras(from, to, zone) {
  const offset = at => wall(at, zone) - at, found = [[from, to, offset(from)]];
  for (let at = from; at < to; at += day / 4) {
    const next = Math.min(to, at + day / 4), after = offset(next);
    if (after === found.at(-1)[2]) continue;
    let low = at, high = next;
    while (high - low > 1000) {
      const middle = Math.floor((low + high) / 2000) * 1000;
      if (offset(middle) === after) high = middle;
      else low = middle;
    }
    found.at(-1)[1] = high;
    found.push([high, to, after]);
  }
  return found;
}

// openings are the stretches [from, to] in milliseconds in which a window is open, from the week before that of at until the one after it, merged and in order.
// What the wall clock shows decides, and nothing else: hours that are skipped are not there, hours that come twice are open twice.
export function openings(window, at) {
  const zone = window.zone || 'UTC', first = monday(at, zone, -7), spans = [], found = [];
  for (let i = -1; i < 21; i++) {
    const date = first + i * day, name = names[(new Date(date).getUTCDay() + 6) % 7];
    for (const span of window.open || []) {
      if (span.days && !span.days.includes(name)) continue;
      const from = minutes(span.from), to = minutes(span.to);
      spans.push([date + from * 60000, date + (to > from ? 0 : day) + to * 60000]);
    }
  }
  for (const [begin, end, offset] of eras(at - 14 * day, at + 14 * day, zone)) {
    for (const [from, to] of spans) {
      const low = Math.max(begin, from - offset), high = Math.min(end, to - offset);
      if (high > low) found.push([low, high]);
    }
  }
  found.sort((a, b) => a[0] - b[0]);
  const joined = [];
  for (const [from, to] of found) {
    if (joined.length && from <= joined.at(-1)[1]) joined.at(-1)[1] = Math.max(joined.at(-1)[1], to);
    else joined.push([from, to]);
  }
  return joined;
}

// cut puts stretches into the seven days of a week that begins at the wall time start of a zone: for each day a list of [from, to] in minutes of its clock.
export function cut(stretches, start, zone) {
  return Array.from({ length: 7 }, (_, i) => {
    const midnight = start + i * day, found = [];
    for (const [from, to] of stretches) {
      const low = Math.max(0, (wall(from, zone) - midnight) / 60000), high = Math.min(1440, (wall(to, zone) - midnight) / 60000);
      if (high > low) found.push([low, high]);
    }
    return found;
  });
}
