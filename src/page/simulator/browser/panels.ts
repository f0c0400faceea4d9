/**
 * The panels of the simulator's page: the choice of a scenario and the sliders that change it, the player of a run, and the plot
 * of its regret beside that of one learner with all inputs.
 */

import uPlot from 'uplot'
import { axisStyle, byId, colourOf, html, setAttribute, setText } from '../../browser/dom.js'
import { formatCount } from '../../format.js'
import { aligned } from '../../plot-data.js'
import { type BuiltIn, CONTROLS, formatValue, INPUTS_SHOWN, stopsWith, withSettings } from '../controls.js'
import type { Frame, RegretPoint } from '../scene.js'

/** Time without further changes after which the run starts again, in milliseconds. */
const SETTLE_MS = 250

interface Slider {
  readonly input: HTMLInputElement
  readonly output: HTMLOutputElement
  stops: readonly number[]
}

export class ControlPanel {
  readonly #onChange: () => void
  readonly #choice = byId<HTMLSelectElement>('scenario')
  readonly #sliders: readonly Slider[]
  /** Settings that differ from the scenario's, by key. */
  readonly #changes = new Map<string, number>()
  #timer: ReturnType<typeof setTimeout> | undefined

  /** @param onChange called when another run is wanted */
  constructor(first: string, onChange: () => void) {
    this.#onChange = onChange
    this.#choice.append(...BUILT_IN_SCENARIOS.map(({ name }) => html('option', { value: name }, name)))
    this.#choice.value = first
    this.#choice.addEventListener('change', () => {
      this.#load()
      this.#onChange()
    })
    this.#sliders = CONTROLS.map(({ key, label, help }, index) => this.#make(index, key, label, help))
    byId('controls').addEventListener('submit', event => event.preventDefault())
    this.#load()
  }

  get name(): string {
    return this.#scenario.name
  }

  get changes(): ReadonlyMap<string, number> {
    return this.#changes
  }

  get values(): Readonly<Record<string, unknown>> {
    return withSettings(this.#scenario.values, this.#changes)
  }

  get #scenario(): BuiltIn {
    return BUILT_IN_SCENARIOS.find(({ name }) => name === this.#choice.value) ?? BUILT_IN_SCENARIOS[0]
  }

  #make(index: number, key: string, label: string, help: string): Slider {
    const id = `setting-${key.replace('.', '-')}`
    const input = html('input', { id, type: 'range', min: 0, step: 1, 'aria-describedby': `${id}-help` })
    const output = html('output', { for: id })
    const row = html('div', { class: 'setting' }, html('label', { for: id }, label), output, input)
    row.append(html('p', { id: `${id}-help`, class: 'see' }, help))
    byId('sliders').append(row)
    input.addEventListener('input', () => {
      const value = this.#sliders[index].stops[input.valueAsNumber]
      if (value === this.#scenario.settings[index]) this.#changes.delete(key)
      else this.#changes.set(key, value)
      this.#show(index, value)
      clearTimeout(this.#timer)
      this.#timer = setTimeout(this.#onChange, SETTLE_MS)
    })
    return { input, output, stops: [] }
  }

  /** Sets all sliders to the values of the chosen scenario. */
  #load(): void {
    const { about, settings } = this.#scenario
    setText(byId('about'), about)
    this.#changes.clear()
    for (const [index, { key, stops }] of CONTROLS.entries()) {
      const slider = this.#sliders[index]
      slider.stops = stopsWith(stops, settings[index])
      const isLong = key === 'inputs' && settings[index] > INPUTS_SHOWN
      const value = isLong ? INPUTS_SHOWN : settings[index]
      if (isLong) this.#changes.set(key, value)
      slider.input.max = String(slider.stops.length - 1)
      slider.input.value = String(slider.stops.indexOf(value))
      this.#show(index, value)
    }
  }

  #show(index: number, value: number): void {
    const { input, output } = this.#sliders[index]
    const text = formatValue(value, CONTROLS[index].unit)
    setText(output, text)
    input.setAttribute('aria-valuetext', text)
  }
}

/** Seconds that a run takes at least at normal speed, with more than this number of frames per second. */
const LEAST_SECONDS = 12
const LEAST_RATE = 3
/** Frames per second at normal speed. */
const RATE = 15

const isCalm = matchMedia('(prefers-reduced-motion: reduce)')

/** Plays the frames of a run: forward in real time as they arrive, or wherever the slider is. */
export class Player {
  readonly #slider = byId<HTMLInputElement>('position')
  readonly #button = byId<HTMLButtonElement>('play')
  readonly #onMove: (index: number) => void
  #length = 0
  #at = 0
  #drawn = -1
  #isPlaying = true
  #rate = RATE
  #before = 0

  /** @param onMove called with the index of the frame to draw */
  constructor(onMove: (index: number) => void) {
    this.#onMove = onMove
    this.#slider.addEventListener('input', () => {
      this.#play(false)
      this.#at = this.#slider.valueAsNumber
    })
    this.#button.addEventListener('click', () => {
      // At the end, it starts again.
      if (!this.#isPlaying && this.#at >= this.#length - 1) this.#at = 0
      this.#play(!this.#isPlaying)
    })
    requestAnimationFrame(now => this.#tick(now))
  }

  reset(): void {
    this.#rate = RATE
    this.#length = 0
    this.#at = 0
    this.#drawn = -1
    // The last frame is drawn instead, once the run has ended.
    this.#play(!isCalm.matches)
  }

  /** Tells the number of frames so far. */
  extend(length: number): void {
    this.#length = length
    this.#slider.max = String(Math.max(0, length - 1))
  }

  /** All frames are there. Few of them are played slowly. */
  end(): void {
    this.#rate = Math.min(this.#rate, Math.max(LEAST_RATE, this.#length / LEAST_SECONDS))
    if (isCalm.matches) this.#at = Math.max(0, this.#length - 1)
  }

  /** Draws the frame again. */
  redraw(): void {
    this.#drawn = -1
  }

  /** Describes the position for screen readers. */
  describe(text: string): void {
    setAttribute(this.#slider, 'aria-valuetext', text)
  }

  #play(isPlaying: boolean): void {
    this.#isPlaying = isPlaying
    setText(this.#button, isPlaying ? 'Pause' : 'Play')
  }

  #tick(now: number): void {
    const seconds = Math.min(0.1, (now - this.#before) / 1000)
    this.#before = now
    const last = this.#length - 1
    if (this.#isPlaying && last >= 0) {
      const speed = Number(byId<HTMLSelectElement>('speed').value)
      this.#at = Math.min(last, this.#at + seconds * this.#rate * speed)
    }
    const index = Math.floor(this.#at)
    if (index !== this.#drawn && index <= last) {
      this.#drawn = index
      this.#slider.value = String(index)
      this.#onMove(index)
    }
    requestAnimationFrame(time => this.#tick(time))
  }
}

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

/** Regret at the last point with at most that number of inputs. */
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
