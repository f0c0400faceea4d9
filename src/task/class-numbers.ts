/** Numbers for classes that are added while a model learns in this process. */
import { addedClasses, type Blocks, type SerialTrainer } from '../learner/index.js'
import { NEW_CLASS, type Rows } from '../streams/index.js'
import { growingNames } from './learning-spec.js'
import type { OpenLearningSpec } from './spec.js'

export class ClassNumbers {
  /** The names of all classes, to which new ones are appended; undefined if the model has no room for more. */
  readonly names: string[] | undefined
  /** Names for which there was no room. */
  readonly refused = new Set<string>()
  readonly #trainer: Pick<SerialTrainer, 'addClass'>

  /** @param earlier parameters of the run that the trainer continues */
  constructor(spec: OpenLearningSpec, trainer: Pick<SerialTrainer, 'addClass'>, earlier?: Blocks) {
    const named = growingNames(spec)
    this.names = named && [...named, ...addedClasses(earlier?.[1] ?? new Float32Array(0))]
    this.#trainer = trainer
  }

  /** The rows with class numbers for labels whose names are new. The label is NaN if there is no room. */
  apply(rows: Rows): Rows {
    const { newClasses, labels, size } = rows
    if (newClasses === undefined || !labels.subarray(0, size).some(label => label >= NEW_CLASS)) return rows
    const found = labels.slice(0, size).map(label => {
      return label >= NEW_CLASS ? this.#numberOf(newClasses[label - NEW_CLASS]) : label
    })
    return { ...rows, labels: found }
  }

  #numberOf(name: string): number {
    const known = this.names?.indexOf(name) ?? -1
    if (known >= 0) return known
    const number = this.#trainer.addClass(name)
    if (number === undefined) {
      this.refused.add(name)
      return Number.NaN
    }
    this.names?.push(name)
    return number
  }
}
