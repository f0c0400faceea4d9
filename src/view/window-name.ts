/** A time of so many seconds, as the option `--windows` has it: `90s`, `15m`, `1h`, `7d`. */
export function windowName(seconds: number): string {
  const units = { d: 86_400, h: 3600, m: 60 }
  const unit = (Object.keys(units) as (keyof typeof units)[]).find(name => seconds % units[name] === 0)
  return unit === undefined ? `${seconds}s` : `${seconds / units[unit]}${unit}`
}
