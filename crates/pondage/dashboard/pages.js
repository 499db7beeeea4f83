// What each page shows: tables of the console with the columns worth seeing, and what can be done.

import { html } from '/assets/vendor/preact-htm.js';
import { quoted } from '/assets/api.js';
import { Chart } from '/assets/chart.js';
import * as format from '/assets/format.js';
import { Table, objects } from '/assets/table.js';

const overview = {
  title: 'Overview',
  draw: ({ state, samples, scheme }) => {
    const now = state.overview;
    const facts = [
      ['Statements/s', format.rate(now.statements_per_second)],
      ['Transactions/s', format.rate(now.transactions_per_second)],
      ['Clients', format.count(now.clients)],
      ['Waiting', format.count(now.clients_waiting), now.clients_waiting > 0],
      ['Servers', format.count(now.servers)],
      ['At the server, p50', format.seconds(now.p50_seconds.server)],
      ['At the server, p99', format.seconds(now.p99_seconds.server)],
      ['Waiting, p99', format.seconds(now.p99_seconds.waiting)],
      ['Cache hits', format.share(now.hit_rate)],
      ['Stream behind by', format.bytes(now.replication_lag_bytes)],
      ['Redis commands/s', format.rate(now.redis_commands_per_second)],
      ['Procedure calls/s', format.rate(now.procedure_calls_per_second)],
    ];
    return html`<dl class="facts" aria-label="The last second">
        ${facts.map(([label, value, warns]) => html`<div class=${warns ? 'warn' : ''}><dt>${label}</dt><dd>${value}</dd></div>`)}
      </dl>
      <div class="charts">
        <${Chart} title="Throughput" samples=${samples} scheme=${scheme} shown=${format.rate} lines=${[
          ['Statements/s', (one) => one.statements_per_second, 1],
          ['Redis commands/s', (one) => one.redis_commands_per_second, 2],
        ]} />
        <${Chart} title="Time, 99th percentile" samples=${samples} scheme=${scheme} shown=${format.seconds} lines=${[
          ['At the server', (one) => one.p99_seconds.server, 1],
          ['Waiting for one', (one) => one.p99_seconds.waiting, 3],
        ]} />
        <${Chart} title="Connections" samples=${samples} scheme=${scheme} shown=${format.count} lines=${[
          ['Clients', (one) => one.clients, 2],
          ['Servers', (one) => one.servers, 1],
          ['Waiting', (one) => one.clients_waiting, 3],
        ]} />
        <${Chart} title="Reads from the cache" samples=${samples} scheme=${scheme} shown=${format.share} lines=${[
          ['Hit rate', (one) => one.hit_rate, 2],
        ]} />
      </div>`;
  },
};

const pools = {
  title: 'Pools',
  draw: ({ state, admin, ask }) => html`
    ${admin && html`<${Databases} state=${state} ask=${ask} />`}
    <${Table} id="pools" caption="Pools" table=${joined(state)} empty="No client has come yet. Connect one: psql -h 127.0.0.1 -p 6432." columns=${[
      ['database', 'Database'],
      ['user', 'User'],
      ['pool_mode', 'Mode'],
      ['clients', 'Clients', 'count'],
      ['cl_waiting', 'Waiting', 'count', { warn: (row) => row.cl_waiting > 0 }],
      ['sv_active', 'Servers at work', 'count'],
      ['sv_idle', 'Idle', 'count'],
      ['wait', 'Longest wait', 'seconds', { warn: (row) => row.wait >= 1 }],
      ['query_p50', 'Query p50', 'micros'],
      ['query_p99', 'Query p99', 'micros'],
      ['wait_p99', 'Wait p99', 'micros'],
    ]} />
    <${Table} id="blockers" caption="Who holds what others wait for" table=${state.tables.blockers} empty="Nobody waits for a server." columns=${[
      ['database', 'Database'],
      ['waiting', 'Waiting', 'count'],
      ['why', 'Why'],
      ['client_id', 'Holder', 'text'],
      ['application_name', 'Application'],
      ['addr', 'Address'],
      ['state', 'State'],
      ['held', 'Held for', 'seconds'],
      ['query', 'Last statement', 'text', { wide: true }],
    ]} actions=${admin && ((row) => row.client_id !== null && html`<button type="button" class="danger" onClick=${() => ask({
      title: `End client ${row.client_id}?`,
      text: 'Its connection is closed and its transaction rolled back; its server goes to who waits.',
      label: 'End the client',
      danger: true,
      command: () => `KILL_CLIENT ${row.client_id}`,
    })}>End</button>`)} />
    <${Table} id="pins" caption="Clients that keep their server" table=${state.tables.pins} empty="Nobody keeps a server beyond a transaction." columns=${[
      ['database', 'Database'],
      ['user', 'User'],
      ['client_id', 'Client', 'text'],
      ['application_name', 'Application'],
      ['reasons', 'Because of'],
      ['since', 'Since'],
    ]} />
    <${Table} id="hosts" caption="Hosts" table=${state.tables.hosts} empty=${'No database has several hosts. One has when its host is a list: host = "db1,db2".'} columns=${[
      ['database', 'Database'],
      ['host', 'Host'],
      ['role', 'Role'],
      ['state', 'State', 'text', { warn: (row) => row.state === 'banned' }],
      ['why', 'Why'],
      ['connections', 'Servers', 'count'],
      ['lag_bytes', 'Behind by', 'bytes'],
      ['probe_us', 'Round trip', 'micros'],
    ]} />`,
};

// SHOW POOLS with the quantiles of SHOW POOLS_EXTENDED.
function joined(state) {
  const more = new Map(objects(state.tables.pools_extended).map((row) => [`${row.database} ${row.user}`, row]));
  const rows = objects(state.tables.pools).map((row) => ({
    ...more.get(`${row.database} ${row.user}`),
    ...row,
    clients: row.cl_active + row.cl_waiting,
    wait: row.maxwait + row.maxwait_us / 1e6,
  }));
  const columns = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  return { columns, rows: rows.map((row) => columns.map((name) => row[name] ?? null)), more: state.tables.pools.more };
}

function Databases({ state, ask }) {
  const names = [...new Set(state.pools.map((pool) => pool.database))];
  const paused = new Set(state.pools.filter((pool) => pool.paused).map((pool) => pool.database));
  const button = (label, verb, database, title, text, danger) => html`<button type="button" class=${danger ? 'danger' : ''} onClick=${() => ask({
    title, text, label, danger, command: () => (database ? `${verb} ${quoted(database)}` : verb),
  })}>${label}</button>`;
  return html`<section class="panel" aria-labelledby="databases"><div class="panel-head"><h2 id="databases">Databases</h2>
    ${button('Reload', 'RELOAD', null, 'Reload the configuration?', 'A file with errors changes nothing, and says why.')}</div>
    <ul class="databases">${names.map((name) => html`<li key=${name}><b>${name}</b> ${paused.has(name) && html`<span class="badge">paused</span>`}
      <span class="buttons">
      ${paused.has(name)
        ? button('Resume', 'RESUME', name, `Resume ${name}?`, 'Its clients go on.')
        : button('Pause', 'PAUSE', name, `Pause ${name}?`, 'Transactions end, servers are closed, and clients wait until Resume. Nothing is lost.')}
      ${button('Reconnect', 'RECONNECT', name, `Reconnect ${name}?`, 'Each server is closed when it is free, and opened anew.')}
      ${button('Kill', 'KILL', name, `Kill ${name}?`, 'Every connection of its clients and servers is closed at once; what was not committed is rolled back. New clients wait until Resume.', true)}
      </span></li>`)}</ul></section>`;
}

const queries = {
  title: 'Queries',
  draw: ({ state, admin, ask }) => html`
    <${Table} id="queries" caption="Statements by total time" table=${state.tables.queries} empty="No statement has run yet." columns=${[
      ['query', 'Statement', 'text', { wide: true }],
      ['database', 'Database'],
      ['calls', 'Calls', 'count'],
      ['total_time', 'Total time', 'micros'],
      ['mean', 'Mean', 'micros'],
      ['p99', 'p99', 'micros'],
      ['joined_percent', 'Shared trips', 'percent'],
      ['errors', 'Errors', 'count', { warn: (row) => row.errors > 0 }],
      ['why', 'Travels', 'text', { format: (why, row) => [row.way, why].filter(Boolean).join(', ') }],
    ]} />
    <${Table} id="proxied" caption="Reads that went to PostgreSQL" table=${state.tables.proxied_queries}
      note="Could they be cached? In mode advise, hits are counted as if they were."
      empty=${state.cache.streams.length || state.tables.caches?.rows.length ? 'None that nobody has named.' : CACHE_OFF} columns=${[
      ['query', 'Statement', 'text', { wide: true }],
      ['database', 'Database'],
      ['calls', 'Calls', 'count'],
      ['total_time', 'Total time', 'micros'],
      ['hits', 'Would have hit', 'percent', { format: (_, row) => (row.would_hit === null || !row.calls ? '–' : format.percent((100 * row.would_hit) / row.calls)) }],
      ['cacheable', 'Can be cached'],
      ['why', 'Why not'],
    ]} actions=${admin && ((row) => row.cacheable === 'yes' && html`<button type="button" onClick=${() => ask({
      title: 'Cache this statement?',
      text: 'Its results are kept in memory and dropped when their rows change. It goes on until DROP CACHE or the end of the process; the configuration keeps it for good.',
      label: 'Cache this',
      command: () => `CREATE CACHE IN DATABASE ${quoted(row.database)} FROM ${row.query}`,
    })}>Cache this</button>`)} />`,
};

const CACHE_OFF = 'The cache is off. Set mode = "advise" in [cache] of the configuration and RELOAD: this page then says what it would gain.';

const caches = {
  title: 'Caches',
  draw: ({ state, admin, ask }) => {
    const { cache } = state;
    const sum = (name) => state.pools.reduce((all, pool) => all + pool.cache[name], 0);
    const facts = [
      ['Results', format.count(cache.entries)],
      ['Their memory', `${format.bytes(cache.bytes)} of ${format.bytes(cache.limit_bytes)}`],
      ['Mirrors', `${format.bytes(cache.mirror_bytes)} of ${format.bytes(cache.mirror_limit_bytes)}`],
      ['Hits', format.count(sum('hits'))],
      ['Misses', format.count(sum('misses'))],
      ['Audited', format.count(sum('audits'))],
      ['Differing', format.count(sum('mismatches')), sum('mismatches') > 0],
      ['Evicted', format.count(cache.evicted)],
    ];
    return html`<dl class="facts" aria-label="Since the start">
        ${facts.map(([label, value, warns]) => html`<div class=${warns ? 'warn' : ''}><dt>${label}</dt><dd>${value}</dd></div>`)}
      </dl>
      <${Table} id="caches" caption="Cached statements" table=${state.tables.caches} empty=${state.cache.streams.length ? 'None is named. Queries says which could be cached.' : CACHE_OFF} columns=${[
        ['name', 'Name'],
        ['database', 'Database'],
        ['query', 'Statement', 'text', { wide: true }],
        ['freshness', 'Freshness'],
        ['hits', 'Hits', 'count'],
        ['misses', 'Misses', 'count'],
        ['hit_percent', 'Hit rate', 'percent'],
        ['entries', 'Results', 'count'],
        ['bytes', 'Memory', 'bytes'],
        ['state', 'State', 'text', { warn: (row) => row.why !== null && row.why !== '' }],
        ['why', 'Why'],
      ]} actions=${admin && ((row) => html`<button type="button" onClick=${() => ask({
        title: `Drop ${row.name}?`,
        text: 'Its results are forgotten, and the statement goes to PostgreSQL.',
        label: 'Drop',
        command: () => `DROP CACHE ${quoted(row.name)} IN DATABASE ${quoted(row.database)}`,
      })}>Drop</button>`)} />
      <${Table} id="mirrors" caption="Tables in memory" table=${state.tables.mirrors} empty="No table is mirrored. MIRROR TABLE on the console makes one, and so does a statement that gains by it." columns=${[
        ['database', 'Database'],
        ['table', 'Table'],
        ['columns', 'Columns'],
        ['state', 'State'],
        ['why', 'Why'],
        ['rows', 'Rows', 'count'],
        ['bytes', 'Memory', 'bytes'],
        ['copied_percent', 'Copied', 'percent'],
      ]} />`;
  },
};

const replication = {
  title: 'Replication',
  draw: ({ state }) => html`<${Table} id="streams" caption="Streams of changes" table=${state.tables.streams}
    note="The slot keeps WAL on the server for as long as Pondage has not read it; SHOW max_slot_wal_keep_size on the server bounds it."
    empty=${`No database is followed. ${CACHE_OFF}`} columns=${[
      ['database', 'Database'],
      ['state', 'State', 'text', { warn: (row) => row.why !== null && row.why !== '' }],
      ['why', 'Why'],
      ['since', 'Since'],
      ['lag_bytes', 'Behind by', 'bytes'],
      ['delay_us', 'Delay', 'micros'],
      ['slot', 'Slot'],
      ['slot_bytes', 'WAL it keeps', 'bytes'],
      ['followed', 'Tables followed', 'count'],
      ['not_followed', 'Not followed'],
      ['complaint', 'What to do', 'text', { wide: true }],
    ]} />`,
};

const REDIS_OFF = 'There is no Redis door. Set listen.redis = "127.0.0.1:6379" and restart; docs/redis.md says what it needs.';

const redis = {
  title: 'Redis',
  draw: ({ state, samples, scheme }) => html`
    <${Chart} title="Commands" samples=${samples} scheme=${scheme} shown=${format.rate} lines=${[['Commands/s', (one) => one.redis_commands_per_second, 2]]} />
    <${Table} id="redis" caption="The door" table=${state.tables.redis} empty=${REDIS_OFF} columns=${[['key', 'What'], ['value', 'Value']]} />
    <${Table} id="commands" caption="Commands" table=${state.tables.redis_commands} empty="No command was sent yet, or there is no Redis door." columns=${[
      ['command', 'Command'],
      ['calls', 'Calls', 'count'],
      ['failed', 'Failed', 'count', { warn: (row) => row.failed > 0 }],
      ['rejected', 'Rejected', 'count', { warn: (row) => row.rejected > 0 }],
    ]} />
    <${Table} id="keys" caption="Hot keys" table=${state.tables.redis_keys} note="About how often each was named." empty="No key was named yet." columns=${[
      ['db', 'Database', 'text'],
      ['key', 'Key', 'text', { wide: true }],
      ['calls', 'Named', 'count'],
    ]} />`,
};

const procedures = {
  title: 'Procedures',
  draw: ({ state, admin, ask }) => html`<${Table} id="procedures" caption="Procedures that are called" table=${state.tables.procedures}
    empty="No procedure was called yet. CALL one, or a function by SELECT f(...)." columns=${[
      ['procedure', 'Procedure'],
      ['database', 'Database'],
      ['mode', 'Mode'],
      ['key', 'Key'],
      ['key_source', 'Said by'],
      ['calls', 'Calls', 'count'],
      ['calls_per_second', 'Calls/s', 'rate'],
      ['p50_us', 'p50', 'micros'],
      ['p99_us', 'p99', 'micros'],
      ['train', 'Calls in a train', 'rate'],
      ['retries', 'Retries', 'count'],
      ['lock_wait_percent', 'Waits for locks', 'percent', { warn: (row) => row.lock_wait_percent > 10 }],
      ['problems', 'Problems', 'text', { warn: (row) => row.problems !== null && row.problems !== '' }],
    ]} actions=${admin && ((row) => html`<button type="button" onClick=${() => ask({
      title: `How do calls of ${row.procedure} travel?`,
      text: `Parameters: ${row.arguments ?? ''}. In force for the next call, until the process ends; a comment in the database keeps it.`,
      label: 'Set',
      fields: [
        { name: 'key', label: 'Key', value: row.key ?? '', hint: 'parameters that say which rows a call locks, such as p_w' },
        { name: 'mode', label: 'Mode', value: '', options: ['', 'off', 'lane', 'train', 'batch'] },
      ],
      command: ({ key = '', mode = '' }) =>
        `SET PROCEDURE ${row.procedure}${key.trim() ? ` KEY (${key.trim()})` : ''}${mode ? ` MODE ${mode}` : ''}`,
    })}>Set key</button>`)} />`,
};

const events = {
  title: 'Events',
  draw: ({ state }) => html`<${Table} id="events" caption="Events" table=${state.tables.events} empty="Nothing has happened." columns=${plain(state.tables.events)} />`,
};

const advice = {
  title: 'Advice',
  draw: ({ state, admin, ask }) => html`<${Table} id="advice" caption="Advice, what gains most first" table=${state.tables.advice}
    empty="Nothing stands out." columns=${plain(state.tables.advice)}
    actions=${admin && ((row) => RUNS.test(row.command ?? '') && html`<button type="button" onClick=${() => ask({
      title: 'Do as advised?',
      text: `${row.advice}. ${row.basis}.`,
      label: 'Run',
      danger: row.kind === 'transaction',
      command: () => row.command,
    })}>Run</button>`)} />`,
};

// Commands of the console; other advice is for the configuration.
const RUNS = /^(CREATE CACHE|SET PROCEDURE|KILL_CLIENT) /;

// Tables whose every column is worth seeing.
function plain(table) {
  const wide = new Set(['command', 'subject', 'advice', 'basis', 'detail', 'message']);
  return (table?.columns ?? []).map((name) => [name, name.replaceAll('_', ' '), 'text', { wide: wide.has(name) }]);
}

export const PAGES = { overview, pools, queries, caches, replication, redis, procedures, events, advice };

// Pages whose table this version does not have are left out.
export const present = (state) =>
  Object.entries(PAGES).filter(([name]) => !['events', 'advice'].includes(name) || state.tables[name]);
