/** The overview of a whole timeline: how many updates each node was behind. */
import type { Figure } from './render.js'
import { milliseconds, spaceTime, type ViewOf } from './space-time.js'
import type { Colour } from './theme.js'
import { AWAY, type Timeline } from './timeline.js'

/** Bins of the number of updates that a node is behind. */
const BEHIND = [
  { name: 'none behind', max: 0, colour: 'behind-0' },
  { name: '1', max: 1, colour: 'behind-1' },
  { name: '2–3', max: 3, colour: 'behind-2' },
  { name: '4–7', max: 7, colour: 'behind-3' },
  { name: '8–15', max: 15, colour: 'behind-4' },
  { name: '16 and more', max: Number.POSITIVE_INFINITY, colour: 'behind-5' }
] as const satisfies readonly { name: string; max: number; colour: Colour }[]

export function overview({ watched, step, snapshots, cuts }: Timeline, { label, name, sample }: ViewOf): Figure {
  const cells = watched.flatMap((node, row) =>
    runLengths(snapshots.map(snapshot => classOf(snapshot[row]))).map(({ value, start, end }) => ({
      node,
      row,
      from: start * step,
      until: end * step,
      state: value
    }))
  )
  const names = [
    ...BEHIND.map(({ name: bin, colour: fill }) => ({ name: bin as string, colour: fill as Colour })),
    { name: 'away', colour: 'away' as const }
  ]
  const until = snapshots.length * step
  const caption = [
    `How many updates each node was behind the best predictor anywhere, sampled every ${milliseconds(step)} ms of virtual time.`,
    cuts.length > 0 ? 'Bars at the top: partitions of the network.' : '',
    sample
  ]
  return spaceTime({
    name: `${name}-whole`,
    title: 'The whole run: updates behind',
    subtitle: label,
    caption: caption.filter(Boolean).join(' '),
    cells,
    rows: watched.length,
    isNumbered: watched.every((node, index) => node === index),
    range: [0, until],
    classes: names.filter(entry => cells.some(({ state }) => state === entry.name)),
    marks: [],
    cuts,
    tooltip: [
      { field: 'node', title: 'node' },
      { field: 'state', title: 'updates behind' },
      { field: 'from', title: 'from, ms', format: '.1~f' },
      { field: 'until', title: 'until, ms', format: '.1~f' }
    ]
  })
}

function classOf(behind: number): string {
  if (behind === AWAY) return 'away'
  return (BEHIND.find(({ max }) => behind <= max) ?? BEHIND[0]).name
}

/** Run-length encoding of a list. */
export function runLengths<T>(
  values: readonly T[]
): { readonly value: T; readonly start: number; readonly end: number }[] {
  const runs: { value: T; start: number; end: number }[] = []
  for (const [index, value] of values.entries()) {
    const last = runs[runs.length - 1]
    if (last !== undefined && last.value === value) last.end = index + 1
    else runs.push({ value, start: index, end: index + 1 })
  }
  return runs
}
