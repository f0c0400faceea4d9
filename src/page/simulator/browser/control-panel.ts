/** The choice of a scenario, and the sliders that change it. */
import { byId, html, setText } from '../../browser/dom.js'
import { type BuiltIn, CONTROLS, formatValue, INPUTS_SHOWN, stopsWith, withSettings } from '../controls.js'

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
