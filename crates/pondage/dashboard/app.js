// The dashboard: logs in, follows the stream of states, and draws the page that the address names.

import { html, render, useEffect, useRef, useState } from '/assets/vendor/preact-htm.js';
import * as api from '/assets/api.js';
import { Dialog } from '/assets/dialog.js';
import { clock } from '/assets/format.js';
import { PAGES, present } from '/assets/pages.js';

const SAMPLES_MAX = 900;
// Older figures are said to be old.
const STALE_MS = 4000;
const dark = window.matchMedia('(prefers-color-scheme: dark)');

function App() {
  const [session, setSession] = useState(undefined);
  const [failed, setFailed] = useState(null);
  useEffect(() => {
    begin().then(setSession, (error) => {
      setSession(null);
      if (error.status !== 401 || error.code === 'P0502') setFailed(error);
    });
  }, []);
  if (session === undefined) return html`<main class="alone"><p role="status">Loading…</p></main>`;
  if (session === null) return html`<${LogIn} failed=${failed} onSession=${setSession} />`;
  const end = (why) => {
    setFailed(why);
    setSession(null);
  };
  return html`<${Dashboard} session=${session} onEnd=${end} />`;
}

// By the link's token, else by the cookie. The token goes from the address at once.
async function begin() {
  const token = /^#token=([0-9a-f]+)$/.exec(location.hash);
  if (!token) return api.session();
  history.replaceState(null, '', '/#/overview');
  return api.logIn({ token: token[1] });
}

function LogIn({ failed, onSession }) {
  const [error, setError] = useState(failed);
  const [busy, setBusy] = useState(false);
  const submit = async (event) => {
    event.preventDefault();
    const given = new FormData(event.target);
    setBusy(true);
    try {
      onSession(await api.logIn({ user: given.get('user'), password: given.get('password') }));
    } catch (refused) {
      setBusy(false);
      setError(refused);
    }
  };
  return html`<main class="alone"><form class="panel" onSubmit=${submit}>
    <h1>Pondage</h1>
    <p class="muted">For users of the console: <code>auth.admin_users</code> and <code>auth.stats_users</code>.</p>
    <label for="user">User<input id="user" name="user" autocomplete="username" required autofocus /></label>
    <label for="password">Password<input id="password" name="password" type="password" autocomplete="current-password" required /></label>
    ${error && html`<p role="alert" class="error"><b>${error.message}</b> ${error.hint}</p>`}
    <button type="submit" class="primary" disabled=${busy}>${busy ? 'Logging in…' : 'Log in'}</button>
  </form></main>`;
}

function Dashboard({ session, onEnd }) {
  const [state, setState] = useState(null);
  const [samples, setSamples] = useState([]);
  const [fresh, setFresh] = useState(true);
  const [page, setPage] = useState(named());
  const [asked, setAsked] = useState(null);
  const [said, setSaid] = useState(null);
  const [scheme, setScheme] = useState(dark.matches);
  const heardAt = useRef(performance.now());
  useEffect(() => {
    const again = () => {
      setPage(named());
      setSaid(null);
    };
    const recolour = () => setScheme(dark.matches);
    window.addEventListener('hashchange', again);
    dark.addEventListener('change', recolour);
    api.history().then((past) => setSamples((now) => merged(past.samples, now)), () => {});
    const close = api.stream({
      heard: (next) => {
        heardAt.current = performance.now();
        setFresh(true);
        setState(next);
        setSamples((now) => merged(now, [next.overview]));
      },
      lost: () => setFresh(false),
      ended: () => onEnd({ message: 'The session has ended.', hint: 'Log in again.' }),
    });
    const timer = setInterval(() => {
      if (performance.now() - heardAt.current > STALE_MS) setFresh(false);
    }, 1000);
    return () => {
      window.removeEventListener('hashchange', again);
      dark.removeEventListener('change', recolour);
      clearInterval(timer);
      close();
    };
  }, []);
  // A command's answer: null when it was done, else why not.
  const run = async (text) => {
    try {
      const answer = await api.command(text);
      setSaid([answer.tag, ...answer.notices].join('. '));
      return null;
    } catch (error) {
      return error;
    }
  };
  const leave = async () => {
    await api.logOut().catch(() => {});
    onEnd(null);
  };
  const title = PAGES[page].title;
  useEffect(() => {
    document.title = `${title} · Pondage`;
  }, [title]);
  return html`<a class="skip" href="#main" onClick=${skip}>Skip to the figures</a>
    <header>
      <span class="brand">Pondage <span class="muted">${session.version}</span></span>
      <p class=${`health ${state && !state.health.ok ? 'bad' : ''}`} role="status">${sentence(state, fresh)}</p>
      <span class="who">${session.user}${session.role === 'stats' ? ' (may look)' : ''} <button type="button" onClick=${leave}>Log out</button></span>
    </header>
    <nav aria-label="Pages"><ul>${(state ? present(state) : Object.entries(PAGES)).map(([name, one]) => html`
      <li key=${name}><a href=${`#/${name}`} aria-current=${name === page ? 'page' : undefined}>${one.title}</a></li>`)}</ul></nav>
    <main id="main" tabindex="-1" class=${fresh ? '' : 'stale'}>
      <h1>${title}</h1>
      <p class="said" role="status">${said}</p>
      ${state ? PAGES[page].draw({ state, samples, scheme, admin: session.role === 'admin', ask: setAsked }) : html`<p>Waiting for the first figures…</p>`}
    </main>
    <${Dialog} asked=${asked} run=${run} onDone=${() => setAsked(null)} />`;
}

function skip(event) {
  event.preventDefault();
  document.getElementById('main').focus();
}

function named() {
  const name = location.hash.replace(/^#\//, '');
  return Object.hasOwn(PAGES, name) ? name : 'overview';
}

function sentence(state, fresh) {
  if (!state) return fresh ? 'Connecting…' : 'Pondage does not answer. This page goes on by itself when it does.';
  if (!fresh) return `No news since ${clock(state.time)} UTC: these figures are old. Connecting again…`;
  return state.health.sentence;
}

// In order of time, each once.
function merged(older, newer) {
  const last = older.length ? older[older.length - 1].time : 0;
  return [...older, ...newer.filter((one) => one.time > last)].slice(-SAMPLES_MAX);
}

render(html`<${App} />`, document.getElementById('app'));
