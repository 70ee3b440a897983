// Clear ids. Each look at them is a line in the audit log, so they are asked for once for each session and remembered while they are shown: what is asked for
// every two seconds has hashed ids.

const again = 30000; // milliseconds between two looks, while sessions come that are not known yet

const fields = ['principal', 'object', 'client'];

export function clearIDs() {
  let known = new Map(), looked = -Infinity;
  return {
    // due says whether the page that is asked for next should have clear ids.
    due: sessions => !sessions || sessions.some(one => !known.has(one.id)) && performance.now() - looked > again,
    learn(sessions) {
      looked = performance.now();
      for (const one of sessions) known.set(one.id, Object.fromEntries(fields.map(name => [name, one[name]])));
    },
    fill: one => ({ ...one, ...known.get(one.id) }),
    has: id => known.has(id),
    forget() {
      known = new Map();
      looked = -Infinity;
    },
  };
}
