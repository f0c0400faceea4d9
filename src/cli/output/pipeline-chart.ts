/** The time chart of a pipeline: which device computes what, and when. */
import { line, plot, text } from '../../../sim/report/svg.js'
import { SERIES, standalone } from '../../../sim/report/theme.js'
import type { Operation } from '../../l2l/executor/pipeline-orders.js'
import type { Timeline } from '../../l2l/planning/timeline.js'

const ROW = 28
const KINDS: readonly Operation['kind'][] = ['forward', 'backward', 'weights']

/** @returns an SVG file: a row for each stage, a bar with the number of its microbatch for each operation; later chunks are paler */
export function pipelineChart({ operations, ms, bubble }: Timeline, schedule: string): string {
  const stages = 1 + Math.max(...operations.map(({ stage }) => stage))
  const paint = (kind: Operation['kind']) => SERIES[KINDS.indexOf(kind)]
  const used = KINDS.filter(kind => operations.some(operation => operation.kind === kind))
  const title = `${schedule} on ${stages} devices: they wait for ${(100 * bubble).toFixed(1)} % of ${ms.toFixed(1)} ms`
  const frame = {
    name: 'pipeline',
    title,
    caption: `${title}. Bars are operations, with the numbers of their microbatches.`,
    width: 860,
    height: ROW * stages,
    x: { title: 'expected time in ms', domain: [0, ms] as const },
    y: { title: 'stage', domain: [stages, 0] as const, ticks: [] },
    hasGrid: false,
    key: used.map(kind => ({ label: kind, symbol: `<path d="M-5,-5h10v10h-10Z" fill="${paint(kind)}"/>` }))
  }
  const svg = plot(frame, ({ x, y }) => [
    ...Array.from({ length: stages }, (_, stage) => text(-10, y(stage) + ROW / 2 + 4, `${stage}`, 'muted', 'end')),
    ...operations.map(({ stage, chunk, microbatch, kind, start, end }) => {
      const [left, right, top] = [x(start), x(end), y(stage) + 2]
      const opacity = 0.75 / (1 + Math.floor(chunk / stages) / 2)
      const bar = `<path d="M${left},${top}H${right}V${top + ROW - 4}H${left}Z" fill="${paint(kind)}" fill-opacity="${opacity.toFixed(2)}"/>`
      const isWide = right - left > 14
      return `${bar}${isWide ? text((left + right) / 2, top + ROW / 2 + 2, `${microbatch}`, 'ink', 'middle') : ''}`
    }),
    line(0, y(stages), x(ms), y(stages), ' stroke="currentColor" stroke-opacity="0.3"')
  ])
  return standalone(svg)
}
