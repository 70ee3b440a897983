// Live views: asks again and again while somebody looks, less and less while nobody answers.

const period = 2000, longest = 60000;

// live asks with ask(signal) and hands the answer to show. report is told {state, at, next}: state is "live", "stale" or "locked", at the moment of the
// last good answer, next the seconds until the next question. A document that is hidden asks nothing, and at once when it is seen again.
export function live({ ask, show, report, every = period }) {
  let timer = 0, request = null, failures = 0, at = null, over = false;

  function later(wait) {
    clearTimeout(timer);
    if (!over && !document.hidden) timer = setTimeout(now, wait);
  }

  function failed(error) {
    failures++;
    const wait = Math.max((error.retryAfter || 0) * 1000, Math.min(longest, period * 2 ** (failures - 1)));
    const state = error.status === 401 ? 'locked' : error.status === 429 ? 'slowed' : 'stale';
    report({ state, at, next: Math.round(wait / 1000), error });
    later(wait);
  }

  async function now() {
    clearTimeout(timer);
    request?.abort();
    if (over || document.hidden) return;
    const mine = request = new AbortController();
    try {
      const answer = await ask(mine.signal);
      if (mine.signal.aborted || over) return;
      failures = 0;
      at = new Date();
      show(answer);
      report({ state: 'live', at });
      later(every);
    } catch (error) {
      if (mine.signal.aborted || over) return;
      if (error.status === undefined) console.error(error); // a defect of this page, not of the server
      failed(error);
    } finally {
      if (request === mine) request = null;
    }
  }

  function seen() {
    if (document.hidden) {
      clearTimeout(timer);
      request?.abort();
    } else {
      now();
    }
  }

  document.addEventListener('visibilitychange', seen);
  addEventListener('online', now);
  now();
  return {
    now,
    stop() {
      over = true;
      clearTimeout(timer);
      request?.abort();
      document.removeEventListener('visibilitychange', seen);
      removeEventListener('online', now);
    },
  };
}
