/**
 * The page's plots: progressive losses, or RMSE, with a line for each peer in a colour of its own and dashed references; and a
 * bar chart of the number of peers by a figure.
 */
import uPlot from 'uplot'
import { logLabels, logTicks, tickLabels } from '../../numeric/ticks.js'
import type { PeerRow } from '../../view/types.js'
import {
  formatCount,
  formatDuration,
  formatError,
  formatLoss,
  MARKS,
  type Measure,
  markColour,
  measureOf,
  peerName
} from '../format.js'
import type { NetworkState } from '../network-state.js'
import { aligned, curveLine, inputsOf, type Line, level, secondsSince } from '../plot-data.js'
import { axisStyle, colourOf, html, keyed, resolved, setAttribute, setText, svg } from './dom.js'

type Against = 'inputs' | 'time'

const HEIGHT = 260
const DASHES = { serial: [7, 4], isolated: [2, 3] }
const REFERENCES = { serial: 'one learner with all inputs', isolated: 'each peer alone' }
/** Distances of the ticks of the time axis. */
const SECONDS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21_600, 43_200, 86_400]
/** Mean width of a letter of the axes, and of ticks and spaces beside a label, in pixels. */
const LETTER = 7
const LABEL_SPACE = 14

export class LossPlot {
  readonly #host: HTMLElement
  readonly #against: Against
  readonly #onChoose: ((id: string) => void) | undefined
  readonly #canvas = html('div', { class: 'canvas', role: 'img' })
  readonly #readout = html('p', { class: 'readout' })
  readonly #key = html('ul', { class: 'legend key', 'aria-label': 'Lines' })
  #plot: uPlot | undefined
  #drawn = ''
  /** The peers with lines, the selected one last, so that its line lies above the others. */
  #rows: readonly PeerRow[] = []
  #state: NetworkState | undefined
  #chosen: string | undefined
  #measure: Measure = measureOf([])
  /** Whether a range was selected, which new data then keeps. */
  #isZoomed = false

  /** @param onChoose called with the peer whose name in the key was selected @default the key is plain text */
  constructor(host: HTMLElement, against: Against, onChoose?: (id: string) => void) {
    this.#host = host
    this.#against = against
    this.#onChoose = onChoose
    host.append(this.#canvas, this.#readout, this.#key)
  }

  draw(state: NetworkState, chosen: string | undefined): void {
    this.#state = state
    this.#chosen = chosen
    this.#measure = measureOf(state.rows)
    const shown = state.rows.filter(({ id }) => state.curves.has(id))
    this.#rows = [...shown.filter(({ id }) => id !== chosen), ...shown.filter(({ id }) => id === chosen)]
    const { of } = this.#measure
    const { x, ys } = aligned(this.#lines(state))
    const columns = ys.map(column => column.map(loss => (typeof loss === 'number' ? of(loss) : loss)))
    const data = [x, ...columns] as unknown as uPlot.AlignedData
    // uPlot reads its series and colours only once, so the plot is recreated if they change.
    const appearance = JSON.stringify([
      this.#rows.map(({ id, name }) => [id, name, this.#colour(id)]),
      state.references.length,
      chosen,
      this.#measure.name,
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
      this.#drawKey(state)
    } else this.#plot?.setData(data, !this.#isZoomed)
    this.#describe(state)
    this.#read(undefined)
  }

  #lines(state: NetworkState): Line[] {
    const none = { points: [], absences: [] }
    const curves = this.#rows.map(({ id }) => state.curves.get(id) ?? none)
    const shown = state.curves.get(this.#shown ?? '') ?? none
    if (this.#against === 'inputs') {
      const references = state.references.map(({ points }) => ({ points }))
      return [...curves.map(curve => curveLine(curve, inputsOf)), ...references, curveLine(shown, inputsOf, true)]
    }
    const start = Math.min(...curves.flatMap(({ points }) => points.slice(0, 1).map(([, at]) => at)))
    const lines = curves.map(curve => curveLine(curve, secondsSince(start)))
    const last = Math.max(1, ...lines.map(({ points }) => points.at(-1)?.[0] ?? 0))
    const references = state.references.map(reference => level(reference, 0, last))
    return [...lines, ...references, curveLine(shown, secondsSince(start), true)]
  }

  /** The peer whose recent loss is drawn. */
  get #shown(): string | undefined {
    return this.#chosen ?? this.#state?.self ?? this.#rows[0]?.id
  }

  /** The colour of a peer's line as a CSS value: that of the text for the selected one, grey for those without one of their own. */
  #colour(id: string): string {
    if (id === this.#chosen) return 'var(--ink)'
    return this.#hasColour(id) ? markColour(this.#state?.placeOf(id) ?? 0) : 'var(--muted)'
  }

  #hasColour(id: string): boolean {
    return (this.#state?.placeOf(id) ?? MARKS) < MARKS
  }

  #options(state: NetworkState, chosen: string | undefined): uPlot.Options {
    const series = this.#rows.map(({ id }) => ({
      stroke: resolved(this.#colour(id)),
      width: id === chosen ? 3 : id === state.self ? 2.5 : this.#hasColour(id) ? 1.5 : 0.75,
      points: { show: false }
    }))
    const references = state.references.map(({ name }) => ({
      stroke: colourOf('--ink'),
      width: 1.5,
      dash: DASHES[name],
      points: { show: false }
    }))
    const recent = {
      stroke: resolved(this.#colour(this.#shown ?? '')),
      width: 1.25,
      dash: [1, 3],
      points: { show: false }
    }
    const axis = axisStyle()
    const values =
      this.#against === 'inputs'
        ? (plot: uPlot, splits: number[]) => logLabels(splits, plot.width, formatCount)
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
          ...(this.#against === 'time' && { incrs: SECONDS }),
          // uPlot's ticks are round only if the axis starts at a power of ten.
          ...(this.#against === 'inputs' && {
            splits: (_plot: uPlot, _axis: number, min: number, max: number) => logTicks(min, max),
            filter: (_plot: uPlot, splits: number[]) => splits
          })
        },
        {
          ...axis,
          values: (_plot, splits) => tickLabels(splits),
          size: (_plot, labels) => LABEL_SPACE + LETTER * Math.max(4, ...(labels ?? []).map(label => label.length))
        }
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
    const values = this.#rows.map((_, line) => near(data[line + 1], index))
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
    const recent = own === undefined ? undefined : near(data[data.length - 1], index)
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
    const measure = this.#measure
    const known = references.map(({ name, points }) => `${name} reaches ${formatError(measure, points.at(-1)?.[1])}`)
    const text = [`Progressive ${measure.noun} of ${this.#rows.length} peers against ${axis}`, ...known].join('; ')
    setAttribute(this.#canvas, 'aria-label', `${text}. The table of peers has the exact values.`)
  }

  /** Names the peer of each line. */
  #drawKey({ references, self, peers, rows, curves }: NetworkState): void {
    const shown = rows.filter(({ id }) => curves.has(id))
    const named = shown.filter(({ id }) => this.#hasColour(id) || id === this.#chosen)
    const others = shown.length - named.length
    const entries = named.map(({ id }) => {
      const notes = [id === self ? ' (this)' : '', id === this.#chosen ? ', selected' : '']
      const kind = id === this.#chosen ? 'chosen' : id === self ? 'own' : 'peer'
      const stroke = html('span', { class: `stroke ${kind}` })
      stroke.style.setProperty('--mark', this.#colour(id))
      const text = `${peerName(id, peers)}${notes.join('')}`
      if (this.#onChoose === undefined) return html('li', {}, stroke, text)
      const button = html('button', { type: 'button', 'aria-pressed': String(id === this.#chosen) }, stroke, text)
      button.addEventListener('click', () => this.#onChoose?.(id))
      return html('li', {}, button)
    })
    const recent = html('span', { class: 'stroke recent' })
    recent.style.setProperty('--mark', this.#colour(this.#shown ?? ''))
    const plain = (kind: string, text: string) => html('li', {}, html('span', { class: `stroke ${kind}` }), text)
    this.#key.replaceChildren(
      ...entries,
      ...(others > 0 ? [plain('others', `${formatCount(others)} other peers`)] : []),
      html('li', {}, recent, `${peerName(this.#shown ?? '', peers)}, over its last 1,000 inputs`),
      ...references.map(({ name }) => plain(name, REFERENCES[name]))
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
function near(column: ArrayLike<number | null | undefined>, index = column.length - 1): number | undefined {
  for (let at = index; at >= 0; at--) {
    const value = column[at]
    if (typeof value === 'number') return value
  }
  return undefined
}

const BAR_HEIGHT = 110
/** Space for the numbers above the bars, and for the labels below them, in pixels. */
const TOP = 16
const BOTTOM = 20
/** Minimum width of a bar whose label fits, in pixels. */
const LABEL_WIDTH = 46

export class Histogram {
  readonly #host: HTMLElement
  readonly #name: string
  readonly #labelOf: (bucket: number) => string
  readonly #drawing = svg('svg', { role: 'img' })

  /** @param labelOf lower bound of a bucket as text */
  constructor(host: HTMLElement, name: string, labelOf: (bucket: number) => string) {
    this.#host = host
    this.#name = name
    this.#labelOf = labelOf
    host.append(this.#drawing)
  }

  draw(counts: readonly number[]): void {
    const used = counts.flatMap((count, bucket) => (count > 0 ? [bucket] : []))
    const first = used[0] ?? 0
    const bars = counts.slice(first, (used.at(-1) ?? 0) + 1).map((count, place) => ({ count, bucket: first + place }))
    const width = Math.max(200, this.#host.clientWidth)
    const step = Math.min(80, width / Math.max(1, bars.length))
    const max = Math.max(1, ...counts)
    const every = Math.ceil(LABEL_WIDTH / step)
    setAttribute(this.#drawing, 'viewBox', `0 0 ${width} ${BAR_HEIGHT}`)
    setAttribute(this.#drawing, 'width', String(width))
    setAttribute(this.#drawing, 'height', String(BAR_HEIGHT))
    const parts = bars.map(({ count, bucket }) => `${formatCount(count)} from ${this.#labelOf(bucket)}`)
    setAttribute(this.#drawing, 'aria-label', `${this.#name}: peers by lower bound: ${parts.join(', ')}`)
    keyed(
      this.#drawing,
      bars,
      ({ bucket }) => String(bucket),
      () =>
        svg('g', {}, svg('rect', { class: 'bar' }), svg('text', { class: 'count' }), svg('text', { class: 'bound' })),
      (group, { count, bucket }) => {
        const x = (bucket - first) * step
        const height = Math.max(count > 0 ? 1 : 0, ((BAR_HEIGHT - TOP - BOTTOM) * count) / max)
        const [bar, above, below] = group.children
        const y = BAR_HEIGHT - BOTTOM - height
        for (const [name, value] of Object.entries({ x: x + 1, y, width: Math.max(1, step - 2), height }))
          setAttribute(bar, name, String(value))
        for (const [text, at] of [
          [above, y - 4],
          [below, BAR_HEIGHT - 6]
        ] as const) {
          setAttribute(text, 'x', String(x + step / 2))
          setAttribute(text, 'y', String(at))
        }
        setText(above, count > 0 && step >= LABEL_WIDTH / 2 ? formatCount(count) : '')
        setText(below, (bucket - first) % every === 0 ? this.#labelOf(bucket) : '')
      }
    )
  }
}
