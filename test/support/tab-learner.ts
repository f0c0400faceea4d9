/** A process that learns as a tab does: it runs with the condition `browser`, and computes gradients on request. */
import type { Examples, Prediction } from '../../src/learning/index.js'
import type { NetworkSpec } from '../../src/nn/spec/network-spec.js'

export interface Work {
  readonly spec: NetworkSpec
  readonly rows: Examples
}

export interface Result {
  readonly initial: readonly Float32Array[]
  readonly gradient: readonly Float32Array[]
  readonly score: { readonly loss: number; readonly hits: number }
  readonly predictions: readonly Prediction[]
}

type CreateLearner = typeof import('../../src/l2l/index.js').networkLearner

/** What a learner computes of rows at its initial parameters. */
export async function resultOf(create: CreateLearner, { spec, rows }: Work): Promise<Result> {
  const learner = await create(spec, rows.size, { backend: 'cpu' })
  const initial = learner.initial()
  const gradient = initial.map(({ length }) => new Float32Array(length))
  learner.addGradient(initial, rows, 0, rows.size, gradient)
  const score = { loss: 0, hits: 0 }
  learner.score(initial, rows, 0, rows.size, score)
  return { initial, gradient, score, predictions: learner.predict(initial, rows, 0, rows.size) }
}

if (process.send !== undefined) {
  // The module that `#l2l` chooses in a browser.
  const { networkLearner } = await import('../../src/l2l/index.browser.js')
  process.on('message', (work: Work) => {
    resultOf(networkLearner, work).then(
      result => process.send?.({ result }),
      (error: Error) => process.send?.({ refused: error.message })
    )
  })
}
