/** The repair that is switched off, and the search for a violation: its trials, and the shorter and shorter runs. */
import type { RepairName } from '../../../../sim/fuzz/repairs.js'
import { byId, html, setText } from '../../browser/dom.js'
import { formatCount } from '../../format.js'
import type { FoundViolation } from '../messages.js'

/** Time for which each shorter run is shown before the next one, in milliseconds. */
const STEP_MS = 90
/** Size of a run with a full bar. */
const FULL = 60

export class SearchPanel {
  readonly #box = byId<HTMLInputElement>('without')
  readonly #choice = byId<HTMLSelectElement>('repair')
  readonly #list = byId('shrinking')
  #timer: ReturnType<typeof setTimeout> | undefined
  #waiting: (() => void)[] = []

  /** @param onChange called when another repair is off, or none */
  constructor(onChange: () => void) {
    this.#choice.append(...REPAIRS.map(({ name, title }) => html('option', { value: name }, title)))
    this.#choice.value = 'incarnations'
    this.#describe()
    this.#choice.addEventListener('change', () => {
      this.#describe()
      if (this.#box.checked) onChange()
    })
    this.#box.addEventListener('change', onChange)
  }

  /** The repair that is off. */
  get repair(): RepairName | undefined {
    return this.#box.checked ? (this.#choice.value as RepairName) : undefined
  }

  get title(): string {
    return REPAIRS.find(({ name }) => name === this.#choice.value)?.title ?? ''
  }

  reset(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#waiting = []
    this.#list.replaceChildren()
    this.#list.hidden = this.repair === undefined
  }

  /** Adds a run that violates the property, shorter than the ones before. */
  add(found: FoundViolation): void {
    this.#later(() => {
      const { nodes, inputs, faults, violation } = found
      const text = `${formatCount(nodes)} nodes, ${formatCount(inputs)} inputs, ${formatCount(faults)} faults`
      // Shrinking also changes what has no effect on the size.
      if (this.#list.lastElementChild?.textContent === text) return
      const bar = html('span', { class: 'size', 'aria-hidden': 'true' })
      bar.style.setProperty('--share', String(Math.min(1, (nodes + inputs / 10 + faults) / FULL)))
      this.#list.append(html('li', { title: violation }, bar, html('span', {}, text)))
      this.#list.scrollTop = this.#list.scrollHeight
    })
  }

  /** Calls a function once all shorter runs are shown. */
  afterwards(action: () => void): void {
    this.#later(action)
  }

  #later(action: () => void): void {
    this.#waiting.push(action)
    this.#timer ??= setTimeout(() => this.#next(), 0)
  }

  #next(): void {
    this.#waiting.shift()?.()
    this.#timer = this.#waiting.length === 0 ? undefined : setTimeout(() => this.#next(), STEP_MS)
  }

  #describe(): void {
    setText(byId('repair-help'), REPAIRS.find(({ name }) => name === this.#choice.value)?.help ?? '')
  }
}
