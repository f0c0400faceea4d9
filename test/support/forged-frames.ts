/** Frames that no correct peer sends, for tests of what a node accepts. */
import type { AdmbNode, Contributor, Effect, Header, Predictor, PredictorId } from '../../src/admb/index.js'
import { ContributorTable, coverageOf } from '../../src/admb/state/coverage.js'
import { CoverageEncoder } from '../../src/admb/wire/coverage-encoder.js'
import { encodeFrame } from '../../src/admb/wire/encode.js'
import type { SentFrame } from '../../src/admb/wire/frame.js'
import type { Blocks } from '../../src/learning/types.js'

/** Contributors of a forged coverage: names `PREFIX0`, `PREFIX1`, … */
export interface ForgedCoverage {
  readonly prefix: string
  readonly size: number
  /** Covered segments of each. */
  readonly segments: number
}

/** A contributor, and its certificate, if it has one. */
export type Certified = readonly [Contributor, Uint8Array | undefined]

/** A neighbour at session 1 of an edge that sends whatever it is told to. Every frame starts a new dictionary. */
export class Forger {
  readonly #node: AdmbNode
  readonly #edge: number
  readonly #peer: string
  /** Of the node, since the last frame. */
  effects: readonly Effect[] = []
  #sequence = 0

  constructor(node: AdmbNode, edge: number, peer = `forger${edge}`) {
    this.#node = node
    this.#edge = edge
    this.#peer = peer
    node.connect(edge, 1, peer)
  }

  /** Sends a sum at the node's predictor. @returns the reasons for which the node refused it */
  sum(sum: Blocks, count: number, { prefix, size, segments }: ForgedCoverage): string[] {
    const names = Array.from(
      { length: size },
      (_, i): Certified => [{ origin: prefix + i, incarnation: 1, nonce: 0 }, undefined]
    )
    return this.certifiedSum(sum, count, names, segments)
  }

  /** The same, of contributors with certificates. */
  certifiedSum(sum: Blocks, count: number, contributors: readonly Certified[], segments = 1): string[] {
    const table = new ContributorTable()
    const encoder = new CoverageEncoder()
    const { id } = this.#node.predictor
    if (id.updates > 0) encoder.index(table.indexOf(id))
    const contributed: number[] = []
    for (const [contributor, certificate] of contributors) {
      const index = table.indexOf(contributor)
      if (certificate) table.certify(index, certificate)
      encoder.index(index)
      contributed.push(index)
    }
    const coverage = coverageOf(
      contributed,
      contributed.map(() => segments)
    )
    const changes = encoder.runs([coverage])
    return this.#send({ id, headers: [], sum: { base: 0, changes, count, sum, float32: 0 } }, table, encoder)
  }

  /**
   * Sends a whole predictor with headers.
   * @param coverages of the batches, newest first
   * @returns the reasons for which the node refused it
   */
  whole(content: Pick<Predictor, 'parameters' | 'average' | 'state'>, lineage: readonly ForgedHeader[]): string[] {
    const table = new ContributorTable()
    const headers = lineage.map(({ id, parent, count, coverage }): Header => {
      const contributors = Array.from({ length: coverage.size }, (_, i) =>
        table.indexOf({ origin: coverage.prefix + i, incarnation: 1, nonce: 0 })
      )
      return {
        id,
        parent,
        count,
        coverage: coverageOf(
          contributors,
          contributors.map(() => coverage.segments)
        )
      }
    })
    const whole = { kind: 'whole', ...content } as const
    return this.#send({ id: lineage[0].id, headers, content: whole }, table, new CoverageEncoder())
  }

  /** Announces a predictor without sending it. */
  offer(updates: number): void {
    this.#send({ id: this.id(updates, '0'.repeat(32)), headers: [] }, new ContributorTable(), new CoverageEncoder())
  }

  #send(
    part: Pick<SentFrame, 'id' | 'headers'> & Partial<SentFrame>,
    table: ContributorTable,
    encoder: CoverageEncoder
  ): string[] {
    const sequence = ++this.#sequence
    const head = { session: 1, sequence, received: 0, heldSum: 0, request: false, content: undefined, sum: undefined }
    this.#node.takeEffects()
    this.#node.receive(this.#edge, encodeFrame({ ...head, ...part }, this.#node.shapes, table, encoder))
    this.effects = this.#node.takeEffects()
    return this.effects.flatMap(effect => (effect.kind === 'refused' ? [effect.reason] : []))
  }

  /** An id of this peer. */
  id(updates: number, digest: string): PredictorId {
    return { updates, origin: updates === 0 ? '' : this.#peer, incarnation: updates === 0 ? 0 : 1, nonce: 0, digest }
  }
}

export interface ForgedHeader {
  readonly id: PredictorId
  readonly parent: PredictorId
  readonly count: number
  readonly coverage: ForgedCoverage
}
