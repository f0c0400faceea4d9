/** The regret of a run up to the shown time, beside that of one learner with all inputs. */
import uPlot from 'uplot'
import { axisStyle, colourOf, html, setAttribute, setText } from '../../browser/dom.js'
import { formatCount } from '../../format.js'
import { aligned } from '../../plot-data.js'
import type { Frame, RegretPoint } from '../messages.js'

const HEIGHT = 240

export class RegretPlot {
  readonly #host: HTMLElement
  readonly #canvas = html('div', { class: 'canvas', role: 'img' })
  readonly #readout = html('p', { class: 'readout' })
  #plot: uPlot | undefined
  #drawn = ''

  constructor(host: HTMLElement) {
    this.#host = host
    const stroke = (kind: string, text: string) => html('li', {}, html('span', { class: `stroke ${kind}` }), text)
    const legend = html('ul', { class: 'legend' }, stroke('own', 'the network'), stroke('serial', 'one learner'))
    host.append(this.#canvas, this.#readout, legend)
  }

  /** @param until index of the shown frame */
  draw(frames: readonly Frame[], until: number, serial: readonly RegretPoint[]): void {
    const shown = frames.slice(0, until + 1).filter(({ inputs }, i, all) => i === 0 || inputs > all[i - 1].inputs)
    const line = shown.map(({ inputs, regret }) => [inputs, regret] as const)
    const { x, ys } = aligned([{ points: line }, { points: serial }])
    const values = [...serial, ...frames.map(({ inputs, regret }) => [inputs, regret] as const)]
    const width = Math.max(240, this.#host.clientWidth)
    const highest = values.reduce((max, point) => Math.max(max, point[1]), 1)
    const last = values.reduce((max, point) => Math.max(max, point[0]), 1)
    const appearance = [width, colourOf('--ink'), last, highest].join()
    const data = [x, ...ys] as unknown as uPlot.AlignedData
    if (appearance !== this.#drawn) {
      this.#drawn = appearance
      this.#plot?.destroy()
      this.#plot = new uPlot(options(width, last, 1.05 * highest), data, this.#canvas)
    } else this.#plot?.setData(data)
    this.#describe(frames.at(until), serial)
  }

  #describe(frame: Frame | undefined, serial: readonly RegretPoint[]): void {
    const alone = regretAt(serial, frame?.inputs ?? 0)
    const text =
      frame === undefined || frame.inputs === 0 || alone === undefined
        ? 'No inputs yet.'
        : `After ${formatCount(frame.inputs)} inputs: the network ${formatCount(frame.regret)}, one learner ${formatCount(alone)}`
    setText(this.#readout, text)
    setAttribute(this.#canvas, 'aria-label', `Regret against inputs. ${text}`)
  }
}

/** Regret at the last point with at most so many inputs. */
export function regretAt(points: readonly RegretPoint[], inputs: number): number | undefined {
  return points.findLast(([at]) => at <= inputs)?.[1]
}

function options(width: number, last: number, highest: number): uPlot.Options {
  const axis = axisStyle()
  const line = { spanGaps: true, points: { show: false } }
  return {
    width,
    height: HEIGHT,
    legend: { show: false },
    cursor: { show: false },
    scales: { x: { time: false, range: [0, last] }, y: { range: [0, highest] } },
    axes: [
      { ...axis, space: 70, size: 32, values: (_plot, splits) => splits.map(formatCount) },
      { ...axis, size: 54, values: (_plot, splits) => splits.map(formatCount) }
    ],
    series: [
      {},
      { ...line, stroke: colourOf('--mark-0'), width: 2.5 },
      { ...line, stroke: colourOf('--ink'), width: 1.5, dash: [7, 4] }
    ]
  }
}
