/** The audits of the learner thread: audits the sums of neighbours, and answers the audits of other peers. */
import type { AdmbNode } from '../admb/index.js'
import type { LearningParts } from '../task/learning-spec.js'
import { KeptInputs, NOT_LISTED } from './kept-inputs.js'
import { type AskedSum, type AuditAnswer, SumAuditor } from './sum-audit.js'
import type { AuditMessage, FromLearner } from './thread-messages.js'

interface LearnerAuditsOptions {
  readonly self: string
  readonly node: AdmbNode
  readonly parts: LearningParts
  /** Whether the inputs of the last sums are kept for auditors. */
  readonly keepsInputs: boolean
  readonly post: (message: FromLearner) => void
}

export class LearnerAudits {
  readonly #options: LearnerAuditsOptions
  /** The inputs of the last sums, if other peers may audit them. */
  readonly kept: KeptInputs | undefined
  /** Undefined while this peer audits no neighbour. */
  #auditor: SumAuditor | undefined

  constructor(options: LearnerAuditsOptions) {
    this.#options = options
    const { self, parts, keepsInputs } = options
    const parameters = parts.learner.layout.blocks.reduce((sum, { length }) => sum + length, 0)
    if (keepsInputs) this.kept = new KeptInputs(self, parameters)
    this.predictorChanged()
  }

  predictorChanged(): void {
    const { node } = this.#options
    this.kept?.hold(node.predictor.id, () => node.storage.save())
    this.#auditor?.remember()
  }

  /** The journal must be complete, because it tells which inputs a sum contains. */
  receive(message: AuditMessage): void {
    const { node, parts, post } = this.#options
    switch (message.kind) {
      case 'take-sum':
        this.#auditor ??= new SumAuditor(node, parts)
        post({ kind: 'sum', id: message.id, sum: this.#auditor.take(message.edge) })
        break
      case 'compare-sum':
        post({ kind: 'compared', id: message.id, audit: this.#auditor?.compare(message.answers) })
        break
      case 'end-audit':
        this.#auditor?.stop()
        this.#auditor = undefined
        break
      case 'answer-audit':
        post({ kind: 'audit-answer', id: message.id, answer: this.#answer(message.asked, message.permits) })
        break
      default:
        message satisfies never
    }
  }

  #answer(asked: AskedSum, permits: boolean): AuditAnswer {
    const { node, self } = this.#options
    const receipt = node.receipts?.answer({ ...asked, origin: self })
    if (!permits) return { inputs: { reason: NOT_LISTED, isPrivate: true }, receipt }
    return { inputs: this.kept?.answer(asked) ?? { reason: 'it keeps no inputs', isPrivate: true }, receipt }
  }
}
