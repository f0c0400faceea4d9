/** Space-time plots: virtual time on the x axis, a row per node, and a colour for the state of the node. */
import type { TopLevelSpec } from '#vega-lite'
import type { Figure } from './render.js'
import { toCsv } from './tables.js'
import { type Colour, colour } from './theme.js'

/** Pixels. */
const WIDTH = 930
const HEIGHT = 320

/** The numeric fields of a cell; the others are text. */
const PARSE = { node: 'number', row: 'number', from: 'number', until: 'number' } as const

/** The run that a view shows. */
export interface ViewOf {
  /** Label of the run, for titles. */
  readonly label: string
  /** Name of the run in file names. */
  readonly name: string
  /** A sentence that says which nodes are shown, if not all. */
  readonly sample: string
}

/** The state of a node during an interval. */
export interface SpaceTimeCell {
  readonly node: number
  readonly row: number
  /** Virtual ms. */
  readonly from: number
  readonly until: number
  /** Name of the state's class. */
  readonly state: string
  /** Description of the predictor, for the tooltip. */
  readonly predictor?: string
}

export interface SpaceTime {
  readonly name: string
  readonly title: string
  readonly subtitle: string
  readonly caption: string
  readonly cells: readonly SpaceTimeCell[]
  readonly rows: number
  /** Whether the row of a node is its number. */
  readonly isNumbered: boolean
  readonly range: readonly [number, number]
  readonly classes: readonly { readonly name: string; readonly colour: Colour }[]
  readonly marks: readonly { readonly at: number; readonly text: string }[]
  readonly cuts: readonly { readonly from: number; readonly until: number }[]
  readonly tooltip: readonly object[]
}

export function spaceTime({
  name,
  title,
  subtitle,
  caption,
  cells,
  rows,
  isNumbered,
  range,
  classes,
  marks,
  cuts,
  tooltip
}: SpaceTime): Figure {
  const x = { type: 'quantitative', scale: { domain: range, nice: false } } as const
  const y = { type: 'quantitative', scale: { domain: [0, rows], reverse: true, nice: false } } as const
  const spec = {
    title: { text: title, subtitle },
    description: caption,
    width: WIDTH,
    height: Math.max(90, Math.min(HEIGHT, rows * 12)),
    layer: [
      {
        data: { name: 'cells', values: compact(cells), format: { type: 'csv', parse: PARSE } },
        transform: [{ calculate: 'datum.row + 1', as: 'below' }],
        mark: { type: 'rect' },
        encoding: {
          x: { ...x, field: 'from', axis: { title: 'virtual time, ms', grid: false, tickCount: 12 } },
          x2: { field: 'until' },
          y: {
            ...y,
            field: 'row',
            axis: { title: 'node', grid: false, ticks: false, labels: isNumbered, tickCount: 5 }
          },
          y2: { field: 'below' },
          color: {
            field: 'state',
            type: 'nominal',
            scale: { domain: classes.map(entry => entry.name), range: classes.map(entry => colour(entry.colour)) },
            legend: { title: null, orient: 'bottom', columns: 7, symbolType: 'square', symbolSize: 120, labelLimit: 0 }
          },
          tooltip
        }
      },
      ...(marks.length === 0
        ? []
        : [
            {
              data: { values: marks },
              mark: { type: 'rule', color: colour('ink'), strokeWidth: 1.5, strokeDash: [4, 3] },
              encoding: { x: { ...x, field: 'at' } }
            },
            {
              data: { values: marks },
              mark: { type: 'text', align: 'left', dx: 4, dy: -7, y: 0, color: colour('ink'), fontSize: 11 },
              encoding: { x: { ...x, field: 'at' }, text: { field: 'text' } }
            }
          ]),
      ...(cuts.length === 0
        ? []
        : [
            {
              data: { values: cuts },
              mark: { type: 'rect', color: colour('bad'), y: -7, y2: -2 },
              encoding: { x: { ...x, field: 'from' }, x2: { field: 'until' } }
            }
          ])
    ]
  }
  return { name, title: `${title}, ${subtitle}`, caption, isWide: true, spec: spec as unknown as TopLevelSpec }
}

/** As CSV, a third of the size of JSON. */
function compact(cells: readonly SpaceTimeCell[]): string {
  const short = (time: number) => Number(time.toFixed(3))
  return toCsv(cells.map(cell => ({ ...cell, from: short(cell.from), until: short(cell.until) })))
}

export function milliseconds(value: number): string {
  return value.toLocaleString('en-US', { maximumFractionDigits: 1 })
}
