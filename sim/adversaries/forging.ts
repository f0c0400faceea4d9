/** Nodes that replace frames by forged ones. A forged frame takes the sequence number and the acknowledgements of a correct one. */
import {
  AdmbNode,
  type AdmbOptions,
  type Contributor,
  type Effect,
  isFragment,
  isVoucher,
  type Predictor,
  type PredictorId
} from '../../src/admb/index.js'
import { ContributorTable, coverageOf } from '../../src/admb/state/coverage.js'
import { Authenticity } from '../../src/admb/trust/authenticity.js'
import { attestedBytes, certifiedBytes } from '../../src/admb/trust/signatures.js'
import { decodeVoucher, encodeVoucher } from '../../src/admb/trust/vouchers.js'
import { Reader } from '../../src/admb/wire/bytes.js'
import { CoverageEncoder } from '../../src/admb/wire/coverage-encoder.js'
import { encodeFrame } from '../../src/admb/wire/encode.js'
import type { SentFrame } from '../../src/admb/wire/frame.js'
import type { Blocks } from '../../src/learning/index.js'
import { type Random, simulatedSigner } from '../engine/random.js'
import { type Adversary, type Setting, table } from './adversary.js'

/** Contributors, and the number of segments covered of each. */
type Claims = readonly (readonly [Contributor, number])[]

/** What a forged frame contains beside its head. */
type Forged =
  | {
      readonly kind: 'sum'
      readonly id: PredictorId
      readonly count: number
      readonly claims: Claims
      /** @default zeros */
      readonly sum?: Blocks
      /** Replaces the certificates of the claims. @default those of the runs */
      readonly certificate?: Uint8Array
    }
  | {
      readonly kind: 'whole'
      readonly predictor: Predictor
      readonly count: number
      readonly claims: Claims
      /** @default the signature of this node */
      readonly signature?: Uint8Array
      /** Its parent, and further ancestors, newest first. @default an invented parent */
      readonly ancestors?: readonly PredictorId[]
    }

/** The start of a frame, which forged frames repeat. */
export type Head = Pick<SentFrame, 'session' | 'sequence' | 'received' | 'heldSum'>

/** Bytes before the head: version and flags. */
export const PREFIX = 2

export function headOf(frame: Uint8Array): { readonly head: Head; readonly rest: Uint8Array } {
  const input = new Reader(frame)
  for (let i = 0; i < PREFIX; i++) input.byte()
  const head = { session: input.uint(), sequence: input.uint(), received: input.uint(), heldSum: input.uint() }
  return { head, rest: frame.subarray(frame.length - 4 - input.left, frame.length - 4) }
}

class ForgingNode extends AdmbNode {
  readonly #forge: Forge
  readonly options: AdmbOptions
  readonly random: Random
  readonly #isActive: () => boolean
  /** Gradients of a contributor that it may claim by the quota of others, and those that it has claimed at the current predictor. */
  #allowance: number
  #claimed = 0
  #at: PredictorId | undefined

  constructor(options: AdmbOptions, forge: Forge, { random, isActive }: Setting) {
    super(options)
    this.#allowance = options.quota?.burst ?? Number.POSITIVE_INFINITY
    this.options = options
    this.#forge = forge
    this.random = random
    this.#isActive = isActive
  }

  /** The claims of this node. */
  claims(segments: number): Claims {
    const { self, incarnation, nonce = 0 } = this.options
    return [[{ origin: self, incarnation, nonce }, segments]]
  }

  /** Largest b. */
  get maxBatch(): number {
    const { batch } = this.options
    return typeof batch === 'number' ? batch : batch.max
  }

  /** As many gradients as a batch needs, or as others accept of that number of contributors. */
  claimable(contributors: number): number {
    const count = Math.floor(Math.min(this.maxBatch, contributors * this.#allowance))
    this.#claimed = count / contributors
    return count
  }

  override tick(elapsed = 1): void {
    super.tick(elapsed)
    const { quota } = this.options
    const { id } = this.predictor
    if (quota === undefined) return
    this.#allowance += quota.perPeriod * elapsed
    if (this.#at === id) return
    this.#allowance = Math.max(0, Math.min(quota.burst, this.#allowance - this.#claimed))
    this.#claimed = 0
    this.#at = id
  }

  override frame(edge: number): Uint8Array | undefined {
    const correct = super.frame(edge)
    if (correct === undefined || isFragment(correct) || !this.#isActive()) return correct
    const forged = this.#forge(this, edge)
    return forged === undefined ? correct : this.#encode(headOf(correct).head, forged)
  }

  #encode(head: Head, forged: Forged): Uint8Array {
    const table = new ContributorTable()
    const encoder = new CoverageEncoder()
    const contributors = forged.claims.map(([contributor]) => table.indexOf(contributor))
    if (this.options.signer) {
      // Without another one, the claims are runs of this node, of names whose keys it has, or of others whose certificates it has received.
      for (const [i, [run]] of forged.claims.entries())
        table.certify(contributors[i], certificateIn(forged) ?? simulatedSigner(run.origin).sign(certifiedBytes(run)))
    }
    const segments = forged.claims.map(([, segments]) => segments)
    const coverage = coverageOf(contributors, segments)
    const frame = { ...head, request: false, headers: [], content: undefined, sum: undefined }
    if (forged.kind === 'whole') {
      const { id, parameters, average, state } = forged.predictor
      const { ancestors = [{ ...id, updates: id.updates - 1 }] } = forged
      const { signer } = this.options
      const headers = ancestors.map((parent, i) => {
        const header = { id: ancestors[i - 1] ?? id, parent, count: forged.count, coverage }
        const own = signer && new Authenticity(signer, this.options.self, table).signed(header).signature
        return { ...header, signature: forged.signature ?? own }
      })
      const content = { kind: 'whole', parameters, average, state } as const
      return encodeFrame({ ...frame, id, headers, content }, this.shapes, table, encoder).slice()
    }
    const { id, count, sum = this.predictor.parameters.map(({ length }) => new Float32Array(length)) } = forged
    if (id.updates > 0) encoder.index(table.indexOf(id))
    const changes = encoder.runs([coverage])
    return encodeFrame(
      { ...frame, id, sum: { base: 0, changes, count, sum, float32: 0 } },
      this.shapes,
      table,
      encoder
    ).slice()
  }
}

function certificateIn(forged: Forged): Uint8Array | undefined {
  return forged.kind === 'sum' ? forged.certificate : undefined
}

/** @returns undefined if the correct frame is sent */
type Forge = (node: ForgingNode, edge: number) => Forged | undefined

function forging(help: string, forge: Forge): Adversary {
  return { help, create: (options, setting) => new ForgingNode(options, forge, setting) }
}

/** Another predictor of the same shape, with the right digest. */
function garbage({ predictor, options, random, claims }: ForgingNode, updates: number): Predictor {
  const parameters = predictor.parameters.map(block => block.map(() => 10 * random.normal()))
  const { state } = predictor
  // Averages of sparse models have blocks of their own.
  const average = predictor.average.length === parameters.length ? parameters : predictor.average
  const [[{ origin, incarnation, nonce }]] = claims.call({ options } as ForgingNode, 1)
  const digest = options.digest([parameters, average, state])
  return { id: { updates, origin, incarnation, nonce, digest }, parameters, average, state }
}

/** A new one in a quarter of the frames, so that the others can answer it. */
function sometimes(forge: Forge): Forge {
  return (node, edge) => (node.random.below(4) === 0 ? forge(node, edge) : undefined)
}

const MAX_SEGMENTS = 2 ** 31 - 1

/** Enough contributors for the largest count with any b. */
function invented(prefix: string): Claims {
  return Array.from({ length: 600 }, (_, i) => [
    { origin: `${prefix.slice(0, 50)}-${i}`, incarnation: 1, nonce: 0 },
    MAX_SEGMENTS
  ])
}

/** Number of contributors in a sum. */
const INVENTED = 64

const COUNTS = [2 ** 39, 2 ** 40, 2 ** 40 + 1, Number.MAX_SAFE_INTEGER]

/** Without a certificate. */
const NONE = new Uint8Array()

/** A sum that is always the same, of as many gradients as a batch needs or others accept, all of which vote for a larger bound. */
function atBound(node: ForgingNode, claims: Claims, certificate?: Uint8Array) {
  const { predictor, options } = node
  const { influence, rule } = options
  const count = node.claimable(claims.length)
  if (count < claims.length || rule.grid !== undefined) return undefined
  const scales = influence?.of(predictor.parameters)
  const most = Math.sqrt(claims.length * count)
  const sum = predictor.parameters.map(({ length }, b) => {
    const scale = scales?.[b] ?? 0
    return new Float32Array(length).fill(scale > 0 ? (scale * most) / Math.sqrt(length) : count)
  })
  if (influence) sum[influence.index].fill(count)
  return { kind: 'sum', id: predictor.id, count, claims, sum, certificate } as const
}

/** Contributors to the sums that the node holds. */
function othersSeenBy(node: ForgingNode): Contributor[] {
  const others = new Map<string, Contributor>()
  for (let edge = 0; edge < 16; edge++)
    for (const one of node.inspect.neighbourSum(edge)?.contributors ?? []) others.set(`${one.origin} ${one.nonce}`, one)
  return [...others.values()]
}

/** Headers of a forged lineage. */
const LINEAGE = 16

const leap: Forge = node => {
  const predictor = garbage(node, node.predictor.id.updates + 1000)
  return { kind: 'whole', predictor, count: node.maxBatch, claims: node.claims(1) }
}

/** Answers each question about a predictor with vouchers of itself and of others. */
class VouchingNode extends ForgingNode {
  readonly #peers = new Map<number, { readonly session: number; readonly peer: string }>()
  #answers: Effect[] = []

  constructor(options: AdmbOptions, setting: Setting) {
    super(options, sometimes(leap), setting)
  }

  override connect(edge: number, session: number, peer: string): void {
    super.connect(edge, session, peer)
    this.#peers.set(edge, { session, peer })
  }

  override receive(edge: number, bytes: Uint8Array): void {
    // Only questions are answered: otherwise two such nodes would answer each other endlessly.
    if (isVoucher(bytes)) {
      const { id, peer } = decodeVoucher(bytes)
      if (peer === '') this.#vouch(edge, id)
    }
    super.receive(edge, bytes)
  }

  #vouch(edge: number, id: PredictorId): void {
    const { signer, self } = this.options
    if (signer === undefined) return
    const { session = 0 } = this.#peers.get(edge) ?? {}
    const signature = signer.sign(attestedBytes(id))
    for (const peer of [self, ...[...this.#peers.values()].map(known => known.peer), `${self}-2`])
      this.#answers.push({ kind: 'announced', edge, bytes: encodeVoucher({ session, id, hops: 0, peer, signature }) })
  }

  override takeEffects(): Effect[] {
    const effects = [...super.takeEffects(), ...this.#answers]
    this.#answers = []
    return effects
  }
}

export const forgers = table({
  'forged-predictor': forging(
    'sends random predictors with a million more updates, or the most possible',
    sometimes(node => {
      const { updates } = node.predictor.id
      const claimed = [updates + 1_000_000, updates + 1_000_000, 2 ** 48, Number.MAX_SAFE_INTEGER]
      const predictor = garbage(node, claimed[node.random.below(claimed.length)])
      return { kind: 'whole', predictor, count: node.maxBatch, claims: node.claims(1) }
    })
  ),
  'forged-update': forging(
    'sends random predictors as its next update of the current one',
    sometimes(node => {
      const { id } = node.predictor
      const predictor = garbage(node, id.updates + 1)
      return { kind: 'whole', predictor, count: node.maxBatch, claims: node.claims(1), ancestors: [id] }
    })
  ),
  'forged-lineage': forging(
    'sends random predictors with a thousand more updates, the last of which it has signed',
    sometimes(node => {
      const predictor = garbage(node, node.predictor.id.updates + 1000 + node.random.below(1000))
      const { id } = predictor
      const ancestors = Array.from({ length: LINEAGE }, (_, i) => ({ ...id, updates: id.updates - 1 - i }))
      return { kind: 'whole', predictor, count: node.maxBatch, claims: node.claims(1), ancestors }
    })
  ),
  'forged-vouchers': {
    help: 'sends random predictors with a thousand more updates, and vouches for them in the names of others',
    create: (options, setting) => new VouchingNode(options, setting)
  },
  equivocation: forging(
    'sends predictors with one id and different contents to different neighbours',
    sometimes(node => {
      const predictor = garbage(node, node.predictor.id.updates + 1)
      return { kind: 'whole', predictor, count: node.maxBatch, claims: node.claims(1) }
    })
  ),
  'replayed-signatures': forging(
    'sends random predictors in the name of others, with a signature that it has received, or with none',
    sometimes(node => {
      const { lineage, predictor, options, random } = node
      const header = lineage.find(({ id }) => id.origin !== options.self)
      if (header === undefined) return undefined
      const forged = garbage(node, predictor.id.updates + random.below(2))
      const { origin, incarnation, nonce } = header.id
      const signature = random.below(4) > 0 ? header.signature : new Uint8Array()
      const claimed = { ...forged, id: { ...forged.id, origin, incarnation, nonce } }
      return { kind: 'whole', predictor: claimed, count: node.maxBatch, claims: node.claims(1), signature }
    })
  ),
  'huge-counts': forging('claims huge numbers of gradients', node => {
    const { id } = node.predictor
    const count = COUNTS[node.random.below(COUNTS.length)]
    if (node.random.below(4) > 0) return undefined
    const others = node.random.below(2) > 0 ? invented(node.options.self) : []
    return { kind: 'sum', id, count, claims: [...node.claims(MAX_SEGMENTS), ...others] }
  }),
  'empty-batches': forging('claims batches of gradients that are zero', node => {
    const { id } = node.predictor
    const count = node.claimable(1)
    return count < 1 ? undefined : { kind: 'sum', id, count, claims: node.claims(1) }
  }),
  'invented-names': forging(
    'claims gradients of invented contributors, or of invented runs of itself and others: a sum that is always the same, as large as the bound allows them together',
    node => {
      const { options, random } = node
      const { self, signer } = options
      const run = (i: number) => ({ origin: self, incarnation: 1, nonce: 1000 + i })
      const other = othersSeenBy(node).find(({ origin }) => origin !== self)
      const kind = signer === undefined ? 0 : random.below(3)
      if (kind === 0) return atBound(node, invented(self).slice(0, INVENTED))
      if (kind === 1)
        return atBound(
          node,
          Array.from({ length: INVENTED }, (_, i) => [run(i), 1])
        )
      const certificate = random.below(4) > 0 ? Uint8Array.from({ length: 64 }, () => random.below(256)) : NONE
      return other && atBound(node, [[{ ...other, nonce: other.nonce + 1000 }, 1]], certificate)
    }
  ),
  'invented-counts': forging(
    'claims as many gradients as a batch needs: a sum that is always the same, as large as the bound allows',
    node => atBound(node, node.claims(1))
  ),
  'forged-coverage': forging('claims the gradients of others, and sends zeros in their place', node => {
    const others = othersSeenBy(node)
    if (others.length === 0) return undefined
    const claims = others.map(one => [one, 1000] as const)
    return { kind: 'sum', id: node.predictor.id, count: others.length * node.maxBatch, claims }
  })
})
