// A line of figures over the last minutes, drawn by uPlot; in words for those who don't see it.

import { html, useEffect, useRef } from '/assets/vendor/preact-htm.js';
import { clock } from '/assets/format.js';

const HEIGHT = 150;

// `lines`: [label, of a sample, the number of its colour].
export function Chart({ title, samples, lines, shown, scheme }) {
  const place = useRef(null);
  const plot = useRef(null);
  const data = [samples.map((sample) => sample.time), ...lines.map(([, of]) => samples.map(of))];
  useEffect(() => {
    const style = getComputedStyle(place.current);
    const colour = (name) => style.getPropertyValue(name).trim();
    const axis = {
      stroke: colour('--muted'),
      font: '11px system-ui, sans-serif',
      grid: { stroke: colour('--line'), width: 1 },
      ticks: { stroke: colour('--line'), width: 1 },
    };
    const options = {
      width: Math.max(place.current.clientWidth, 100),
      height: HEIGHT,
      legend: { show: false },
      cursor: { show: false },
      axes: [
        { ...axis, values: (_, times) => times.map((time) => clock(time).slice(0, seconds(times) ? 8 : 5)) },
        { ...axis, size: 64, values: (_, values) => values.map(shown) },
      ],
      scales: { y: { range: (_, low, high) => [0, Math.max(high ?? 0, 1e-6) * 1.1] } },
      series: [{}, ...lines.map(([label, , hue]) => ({ label, stroke: colour(`--hue-${hue}`), width: 1.5, spanGaps: false }))],
    };
    plot.current = new window.uPlot(options, data, place.current);
    const observer = new ResizeObserver(() => {
      const width = Math.max(place.current?.clientWidth ?? 0, 100);
      plot.current?.setSize({ width, height: HEIGHT });
    });
    observer.observe(place.current);
    return () => {
      observer.disconnect();
      plot.current.destroy();
      plot.current = null;
    };
  }, [scheme]);
  useEffect(() => plot.current?.setData(data), [samples]);
  return html`<figure class="panel chart">
    <figcaption><h2>${title}</h2>
      <ul class="legend">${lines.map(([label, of, hue]) => html`<li><span class=${`swatch hue-${hue}`} aria-hidden="true"></span>${label}:${' '}
        <b>${shown(last(samples, of))}</b> <span class="muted">at most ${shown(most(samples, of))}</span></li>`)}</ul>
    </figcaption>
    <div ref=${place} class="plot" aria-hidden="true"></div>
  </figure>`;
}

// Whether the marks of the axis are less than a minute apart.
const seconds = (times) => times.length > 1 && times[1] - times[0] < 60;

const last = (samples, of) => (samples.length ? of(samples[samples.length - 1]) : null);

function most(samples, of) {
  const values = samples.map(of).filter((value) => value !== null && value !== undefined);
  return values.length ? Math.max(...values) : null;
}
