// Figures as people read them. Each takes what the console gives, and null.

const NONE = '–';
const number = new Intl.NumberFormat('en', { maximumFractionDigits: 1 });
const whole = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });

const or = (shown) => (value) => (value === null || value === undefined ? NONE : shown(value));

export const text = or((value) => String(value));

export const count = or((value) => whole.format(value));

export const rate = or((value) => (value < 10 ? number.format(value) : whole.format(value)));

export const percent = or((value) => `${number.format(value)} %`);

export const share = or((value) => `${number.format(value * 100)} %`);

export const seconds = or((value) => {
  if (value === 0) return '0 ms';
  if (value < 0.001) return `${whole.format(value * 1e6)} µs`;
  if (value < 1) return `${number.format(value * 1e3)} ms`;
  if (value < 120) return `${number.format(value)} s`;
  return `${whole.format(value / 60)} min`;
});

export const micros = or((value) => seconds(value / 1e6));

export const bytes = or((value) => {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let left = value;
  let unit = 0;
  while (left >= 1024 && unit < units.length - 1) {
    left /= 1024;
    unit += 1;
  }
  return `${number.format(left)} ${units[unit]}`;
});

export const clock = (unixSeconds) =>
  new Date(unixSeconds * 1000).toLocaleTimeString('en-GB', { timeZone: 'UTC' });
