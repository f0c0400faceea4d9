/** A plot of progressive losses: one line for each peer in its predictor's colour, and dashed references. */
import uPlot from 'uplot'
import type { PeerRow } from '../../view/types.js'
import { formatCount, formatDuration, formatLoss, markColour, peerName } from '../format.js'
import type { NetworkState } from '../network-state.js'
import { againstInputs, againstTime, aligned, type Line, level, logLabels, logTicks, recentLine } from '../plot-data.js'
import { html, setAttribute, setText } from './dom.js'
import { axisStyle, colourOf, resolved } from './plot-style.js'

export type Against = 'inputs' | 'time'

const HEIGHT = 260
const DASHES = { serial: [7, 4], isolated: [2, 3] }

export class LossPlot {
  readonly #host: HTMLElement
  readonly #against: Against
  readonly #canvas = html('div', { class: 'canvas', role: 'img' })
  readonly #readout = html('p', { class: 'readout' })
  readonly #legend = html('ul', { class: 'legend' })
  #plot: uPlot | undefined
  #drawn = ''
  #rows: readonly PeerRow[] = []
  #state: NetworkState | undefined
  #chosen: string | undefined
  /** Whether a range was selected, which new data then keeps. */
  #isZoomed = false

  constructor(host: HTMLElement, against: Against) {
    this.#host = host
    this.#against = against
    host.append(this.#canvas, this.#readout, this.#legend)
  }

  draw(state: NetworkState, chosen: string | undefined): void {
    this.#state = state
    this.#chosen = chosen
    this.#rows = state.rows.filter(({ id }) => state.curves.has(id))
    const lines = this.#lines(state)
    const { x, ys } = aligned(lines)
    const data = [x, ...ys] as unknown as uPlot.AlignedData
    // uPlot reads its series and colours only once, so the plot is recreated if they change.
    const ends = this.#rows.map(({ id, group, alive }) => `${id} ${group} ${alive}`)
    const appearance = JSON.stringify([
      ends,
      state.references.length,
      chosen,
      colourOf('--ink'),
      this.#host.clientWidth
    ])
    if (appearance !== this.#drawn) {
      this.#drawn = appearance
      this.#plot?.destroy()
      this.#plot = new uPlot(this.#options(state, chosen), data, this.#canvas)
      this.#isZoomed = false
      this.#plot.over.addEventListener('dblclick', () => {
        this.#isZoomed = false
      })
      this.#drawLegend(state)
    } else this.#plot?.setData(data, !this.#isZoomed)
    this.#describe(state)
    this.#read(undefined)
  }

  #lines(state: NetworkState): Line[] {
    const curves = this.#rows.map(({ id }) => state.curves.get(id)?.points ?? [])
    const shown = state.curves.get(this.#shown ?? '')?.points ?? []
    if (this.#against === 'inputs') {
      const references = state.references.map(({ points }) => ({ points }))
      return [...curves.map(againstInputs), ...references, recentLine(shown, undefined)]
    }
    const start = Math.min(...curves.flatMap(points => points.slice(0, 1).map(([, at]) => at)))
    const lines = curves.map(points => againstTime(points, start))
    const last = Math.max(1, ...lines.map(({ points }) => points.at(-1)?.[0] ?? 0))
    return [...lines, ...state.references.map(reference => level(reference, 0, last)), recentLine(shown, start)]
  }

  /** The peer whose recent loss is drawn. */
  get #shown(): string | undefined {
    return this.#chosen ?? this.#state?.self ?? this.#rows[0]?.id
  }

  #options(state: NetworkState, chosen: string | undefined): uPlot.Options {
    const ink = colourOf('--ink')
    const series = this.#rows.map(({ id, group, alive }) => ({
      stroke: id === chosen ? ink : alive ? resolved(markColour(group)) : colourOf('--muted'),
      width: id === chosen ? 3 : id === state.self ? 2.25 : 1.25,
      spanGaps: true,
      points: { show: false }
    }))
    const references = state.references.map(({ name }) => ({
      stroke: ink,
      width: 1.5,
      dash: DASHES[name],
      spanGaps: true,
      points: { show: false }
    }))
    const shown = state.peers.get(this.#shown ?? '')
    const recent = {
      stroke: shown === undefined || shown.id === chosen ? ink : resolved(markColour(shown.group)),
      width: 1.25,
      dash: [1, 3],
      spanGaps: true,
      points: { show: false }
    }
    const axis = axisStyle()
    const values =
      this.#against === 'inputs'
        ? (plot: uPlot, splits: number[]) => logLabels(splits, plot.width)
        : (_plot: uPlot, splits: number[]) => splits.map(value => formatDuration(value))
    return {
      width: Math.max(240, this.#host.clientWidth),
      height: HEIGHT,
      legend: { show: false },
      cursor: { y: false, points: { show: false }, drag: { x: true, y: false } },
      scales: {
        x:
          this.#against === 'inputs'
            ? { time: false, distr: 3, range: (_plot, min, max) => [Math.max(1, min || 1), Math.max(10, max || 10)] }
            : { time: false },
        y: { range: (_plot, min, max) => fitted(min, max) }
      },
      axes: [
        {
          ...axis,
          values,
          space: 56,
          size: 32,
          // uPlot's ticks are round only if the axis starts at a power of ten.
          ...(this.#against === 'inputs' && {
            splits: (_plot: uPlot, _axis: number, min: number, max: number) => logTicks(min, max),
            filter: (_plot: uPlot, splits: number[]) => splits
          })
        },
        { ...axis, values: (_plot, splits) => splits.map(value => String(Number(value.toFixed(3)))), size: 44 }
      ],
      series: [{}, ...series, ...references, recent],
      hooks: {
        setSelect: [
          plot => {
            if (plot.select.width > 0) this.#isZoomed = true
          }
        ],
        setCursor: [plot => this.#read(plot.cursor.idx ?? undefined)]
      }
    }
  }

  /** Shows the losses at the pointer, or at the end: of the selected peer or this one, and the range over all peers. */
  #read(index: number | undefined): void {
    const [state, plot] = [this.#state, this.#plot]
    if (state === undefined || plot === undefined) return
    const { data } = plot
    const values = this.#rows.map((_, line) => near(data[line + 1] as (number | null)[], index))
    const known = values.filter(value => value !== undefined)
    if (known.length === 0) {
      setText(this.#readout, 'Nothing has been learned yet.')
      return
    }
    const x = data[0][index ?? data[0].length - 1]
    const where = this.#against === 'inputs' ? `${formatCount(x)} inputs` : formatDuration(x)
    const one = this.#chosen ?? state.self
    const own = values[this.#rows.findIndex(({ id }) => id === one)]
    const [low, high] = [Math.min(...known), Math.max(...known)].map(formatLoss)
    const recent = own === undefined ? undefined : near(data.at(-1) as (number | null)[], index)
    const parts = [
      index === undefined ? 'Now' : `At ${where}`,
      own === undefined || one === undefined
        ? ''
        : `${peerName(one, state.peers)} ${formatLoss(own)}${recent === undefined ? '' : ` (recent ${formatLoss(recent)})`}`,
      known.length === 1 ? (own === undefined ? low : '') : `${formatCount(known.length)} peers ${low} to ${high}`
    ]
    setText(this.#readout, parts.filter(Boolean).join(' · '))
  }

  #describe({ references }: NetworkState): void {
    const axis = this.#against === 'inputs' ? 'inputs, on a logarithmic axis' : 'time'
    const known = references.map(({ name, points }) => `${name} reaches ${formatLoss(points.at(-1)?.[1])}`)
    const text = [`Progressive loss of ${this.#rows.length} peers against ${axis}`, ...known].join('; ')
    setAttribute(this.#canvas, 'aria-label', `${text}. The table of peers has the exact values.`)
  }

  #drawLegend({ references, self, peers }: NetworkState): void {
    const shown = peers.get(self ?? '') ?? this.#rows[0]
    this.#legend.style.setProperty('--mark', markColour(shown?.group ?? 0))
    const items = [
      ...(self === undefined ? [] : [['own', 'this peer']]),
      ['peer', self === undefined ? 'peers, in their predictor’s colour' : 'other peers, in their predictor’s colour'],
      ['recent', 'over the last 1,000 inputs'],
      ...references.map(({ name }) => [name, name === 'serial' ? 'one learner with all inputs' : 'each peer alone'])
    ]
    this.#legend.replaceChildren(
      ...items.map(([kind, text]) => html('li', {}, html('span', { class: `stroke ${kind}` }), text))
    )
  }
}

/** A range that contains the values with a margin, and is never empty. */
function fitted(min: number | null, max: number | null): [number, number] {
  const [low, high] = [min ?? 0, max ?? 1]
  const margin = Math.max(0.05 * (high - low), 1e-3 * Math.abs(high), 1e-6)
  return [Math.max(0, low - margin), high + margin]
}

/** The value at an index, or the last one before it. */
function near(column: readonly (number | null)[], index = column.length - 1): number | undefined {
  for (let at = index; at >= 0; at--) {
    const value = column[at]
    if (value !== null) return value
  }
  return undefined
}
