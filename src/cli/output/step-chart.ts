/** A pie of where the time of a step goes: figure 6 of Pudipeddi et al. */
import { escaped, text } from '../../../sim/report/svg.js'
import { SERIES, standalone } from '../../../sim/report/theme.js'
import { type StepParts, WORK } from '../../l2l/planning/times.js'

const [WIDTH, HEIGHT, RADIUS, ROW] = [500, 260, 95, 24]
/** The centre of the pie, and the left end of the key. */
const [X, Y, KEY] = [115, 145, 250]

/** The parts that take time, the largest first, with their share. */
export function sharesOf(parts: StepParts) {
  const total = WORK.reduce((sum, work) => sum + parts[work], 0)
  return WORK.filter(work => parts[work] > 0)
    .map(work => ({ work, ms: parts[work], share: parts[work] / total }))
    .sort((a, b) => b.ms - a.ms)
}

/** @returns an SVG file */
export function stepChart(parts: StepParts, schedule: string): string {
  const shares = sharesOf(parts)
  const title = `Expected time of a step, ${schedule}`
  const point = (turn: number) => {
    const angle = 2 * Math.PI * turn - Math.PI / 2
    return `${(X + RADIUS * Math.cos(angle)).toFixed(2)},${(Y + RADIUS * Math.sin(angle)).toFixed(2)}`
  }
  let turn = 0
  const slices = shares.map(({ work, share }) => {
    // A whole turn ends where it begins, so that an arc would be empty.
    const end = turn + Math.min(share, 0.9999)
    const arc = `A${RADIUS},${RADIUS} 0 ${share > 0.5 ? 1 : 0} 1 ${point(end)}`
    const slice = `<path d="M${X},${Y}L${point(turn)}${arc}Z" fill="${paint(work)}" stroke="var(--ground)"/>`
    turn += share
    return slice
  })
  const key = shares.map(({ work, ms, share }, i) => {
    const y = Y - (ROW * (shares.length - 1)) / 2 + i * ROW
    const label = `${work} ${(100 * share).toFixed(1)} % (${ms.toFixed(1)} ms)`
    return `<path d="M${KEY},${y - 9}h12v12h-12Z" fill="${paint(work)}"/>${text(KEY + 20, y + 2, label, 'ink')}`
  })
  const heading = text(12, 24, title, 'ink', 'start', ' font-size="14" font-weight="600"')
  return standalone(
    `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${HEIGHT}" viewBox="0 0 ${WIDTH} ${HEIGHT}" font-family="system-ui, sans-serif" font-size="12.5" role="img"><title>${escaped(title)}</title><desc>Shares of the time by what the device does.</desc>
${[heading, ...slices, ...key].join('\n')}
</svg>`
  )
}

function paint(work: (typeof WORK)[number]): string {
  return SERIES[WORK.indexOf(work)]
}
