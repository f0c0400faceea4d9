/**
 * Audits of neighbours' sums: a peer requests receipts and inputs from the contributors of a sum, and computes the gradients of the inputs
 * again. A contributor sends receipts to all peers, and inputs to the peers that it lists as auditors; see docs/security.md.
 */
import * as z from 'zod'
import { sleep } from '#platform'
import { SEEDS } from '../admb/projection.js'
import { SIGNATURE_BYTES } from '../admb/signatures.js'
import { FetchError, type Log, type Network } from '../network/index.js'
import { RequestError, UnavailableError } from './errors.js'
import { type InputGroup, type KeptAnswer, NOT_LISTED } from './kept-inputs.js'
import type { LearnerHandle } from './learner-handle.js'
import type { AuditAnswer, SumAudit, TakenSum } from './sum-audit.js'

const REQUEST = 'audit '
/** Maximum time of an audit whose gradients cannot be computed again, in ms, and the pause before the next sum. */
const SEARCH_MS = 40_000
const PAUSE_MS = 500
/** Maximum time of the search for a sum of which rounding explains less than half, in ms. */
const STRONG_MS = 5000
/** Time for which a connected peer may have no edge because the tree is changing, in ms. */
const RELINK_MS = 3000
/** Timeout of a request to a contributor, in ms. */
const ANSWER_MS = 20_000
/** Maximum number of addresses that a request asks for: requests are limited to 64 KiB. */
const MOST_WANTED = 500

const idSchema = z.object({
  updates: z.int().min(0),
  origin: z.string().max(128),
  incarnation: z.int().min(0),
  nonce: z.int().min(0),
  digest: z.string().max(64)
})

const askedSchema = z.object({
  predictor: idSchema,
  incarnation: z.int().min(0),
  nonce: z.int().min(0),
  segments: z.int().min(1),
  known: z.array(z.string().max(64)).max(64),
  seed: z
    .int()
    .min(0)
    .max(SEEDS - 1)
    .default(0),
  wantsInputs: z.boolean().default(true),
  wanted: z.array(z.string().max(128)).max(MOST_WANTED)
})

const rowsSchema = z.record(z.string(), z.object({ type: z.enum(['float', 'int']), values: z.array(z.number()) }))

const contactsSchema = z.array(z.object({ id: z.string().max(128), addresses: z.array(z.string().max(1000)).max(16) }))

const receiptSchema = z.object({
  segments: z.int().min(0),
  count: z.int().min(0),
  projection: z.int().min(0).optional(),
  signature: z
    .base64()
    .max(100)
    .transform((text): Uint8Array => Buffer.from(text, 'base64'))
    .refine(({ length }) => length === SIGNATURE_BYTES)
})

const commonSchema = z.object({ contacts: contactsSchema, receipt: receiptSchema.optional() })

const answerSchema = z.union([
  commonSchema.extend({
    groups: z.array(
      z
        .object({ predictor: idSchema, size: z.int().min(1), rows: rowsSchema, encoded: z.base64().optional() })
        .refine(isConsistent, 'rows are inconsistent')
    )
  }),
  commonSchema.extend({ reason: z.string().max(200), isPrivate: z.boolean().default(false) })
])

interface Contact {
  readonly id: string
  readonly addresses: readonly string[]
}

interface AuditsOptions {
  readonly network: Network
  readonly learner: LearnerHandle
  /** The edge to a tree neighbour. */
  readonly edgeOf: (peer: string) => number | undefined
  /** The peers that may receive the inputs of this one. */
  readonly auditors: ReadonlySet<string>
  readonly log: Log
}

export class Audits {
  readonly #options: AuditsOptions
  readonly #stop = new AbortController()
  #isAuditing = false

  constructor(options: AuditsOptions) {
    this.#options = options
  }

  /**
   * Audits the newest sum of a tree neighbour. It continues with later sums while the gradients cannot be computed again, or while
   * rounding explains most of the sum because it has few inputs.
   * @param inputs whether to request inputs in addition to receipts
   * @throws RequestError if the peer is not a neighbour, or sends no sum; UnavailableError during another audit
   */
  async audit(peer: string, inputs: boolean): Promise<SumAudit> {
    if (this.#isAuditing) throw new UnavailableError('another audit is in progress: try again in a moment')
    this.#isAuditing = true
    try {
      return await this.#search(peer, inputs)
    } finally {
      this.#isAuditing = false
      this.#options.learner.endAudit()
    }
  }

  async #search(peer: string, wantsInputs: boolean): Promise<SumAudit> {
    const { learner } = this.#options
    const start = performance.now()
    let best: SumAudit | undefined
    for (;;) {
      const edge = await this.#edgeTo(peer)
      const taken = await learner.takeSum(edge)
      if (taken !== undefined) {
        const answers = await this.#askAll(peer, taken, wantsInputs)
        const found = await learner.compareSum(answers)
        if (found.agrees === false || found.signed === false) return found
        // Later sums are no better.
        if (found.signed && answers.some(({ inputs }) => 'reason' in inputs && inputs.isPrivate)) return found
        if (best === undefined || explained(found) < explained(best)) best = found
        if (explained(best) < 1 / 2) return best
      }
      const time = best === undefined || best.agrees === null ? SEARCH_MS : STRONG_MS
      if (performance.now() > start + time) break
      await this.#pause()
    }
    if (best === undefined) throw new RequestError(`no sum of ${peer} has arrived for ${SEARCH_MS / 1000} s`)
    return best
  }

  async #edgeTo(peer: string): Promise<number> {
    const { network, edgeOf } = this.#options
    const end = performance.now() + RELINK_MS
    for (;;) {
      const edge = edgeOf(peer)
      if (edge !== undefined) return edge
      const isConnected = network.peers.some(({ id }) => id === peer)
      if (!isConnected || performance.now() > end)
        throw new RequestError(`${peer} is not a tree neighbour of this peer: its status lists them`)
      await this.#pause()
    }
  }

  async #pause(): Promise<void> {
    await sleep(PAUSE_MS)
    this.#stop.signal.throwIfAborted()
  }

  /** Answers a request of another peer; undefined if it is not for an audit. */
  async answer(request: Uint8Array, from: string): Promise<Uint8Array | undefined> {
    const { learner, network, auditors, log } = this.#options
    const text = new TextDecoder().decode(request)
    if (!text.startsWith(REQUEST)) return undefined
    const { wanted, wantsInputs, ...asked } = askedSchema.parse(JSON.parse(text.slice(REQUEST.length)))
    const { inputs, receipt } = await learner.answerAudit(asked, wantsInputs && auditors.has(from))
    const contacts = network.peers.filter(({ id }) => wanted.includes(id))
    if ('groups' in inputs) {
      const sent = inputs.groups.reduce((sum, { size }) => sum + size, 0)
      log('info', `the auditor ${from} receives ${sent} inputs of this peer`, { peer: from, inputs: sent })
    }
    const signed = receipt && { ...receipt, signature: Buffer.from(receipt.signature).toString('base64') }
    return new TextEncoder().encode(JSON.stringify({ ...inputs, receipt: signed, contacts }))
  }

  stop(): void {
    this.#stop.abort(new Error('this peer stops'))
  }

  /**
   * Sends requests to the contributors of a sum. The neighbour that has sent the sum, and contributors that have answered, know the
   * addresses of those that are not connected.
   */
  async #askAll(neighbour: string, taken: TakenSum, wantsInputs: boolean): Promise<readonly AuditAnswer[]> {
    const { network } = this.#options
    const answers = taken.contributors.map(
      (): AuditAnswer => ({ inputs: { reason: 'no peer that has answered knows its address' } })
    )
    const known = new Map<string, Contact>(network.peers.map(peer => [peer.id, peer]))
    // A hostile peer may claim gradients of this one.
    known.set(network.id, { id: network.id, addresses: [] })
    let waiting = [...taken.contributors.keys()]
    const wantedOf = (indices: readonly number[]) =>
      indices.map(i => taken.contributors[i].origin).slice(0, MOST_WANTED)
    const add = (contacts: readonly Contact[]) => {
      for (const contact of contacts) if (!known.has(contact.id)) known.set(contact.id, contact)
    }
    const unknown = waiting.filter(i => !known.has(taken.contributors[i].origin))
    const sender = known.get(neighbour)
    if (unknown.length > 0 && sender) add(await this.#contactsOf(sender, taken, wantedOf(unknown)))
    for (;;) {
      const asked = waiting.filter(i => known.has(taken.contributors[i].origin))
      if (asked.length === 0) return answers
      waiting = waiting.filter(i => !asked.includes(i))
      const wanted = wantedOf(waiting)
      await Promise.all(
        asked.map(async i => {
          const contributor = taken.contributors[i]
          try {
            const target = known.get(contributor.origin) as Contact
            const { contacts, ...answer } = await this.#ask(target, contributor, taken, { wanted, wantsInputs })
            answers[i] = answer
            add(contacts)
          } catch (error) {
            this.#stop.signal.throwIfAborted()
            answers[i] = { inputs: failureOf(error as Error) }
          }
        })
      )
    }
  }

  /** The addresses that a peer knows, even if it has not contributed. */
  async #contactsOf(target: Contact, taken: TakenSum, wanted: readonly string[]): Promise<readonly Contact[]> {
    const noRun = { origin: target.id, incarnation: 0, nonce: 0, segments: 1 }
    try {
      return (await this.#ask(target, noRun, taken, { wanted, wantsInputs: false })).contacts
    } catch {
      this.#stop.signal.throwIfAborted()
      return []
    }
  }

  async #ask(
    target: Contact,
    { incarnation, nonce, segments }: TakenSum['contributors'][number],
    { predictor, known, seed }: TakenSum,
    wishes: { readonly wanted: readonly string[]; readonly wantsInputs: boolean }
  ): Promise<AuditAnswer & { readonly contacts: readonly Contact[] }> {
    const asked = { predictor, incarnation, nonce, segments, known, seed, ...wishes }
    if (target.id === this.#options.network.id)
      return { ...(await this.#options.learner.answerAudit(asked, wishes.wantsInputs)), contacts: [] }
    const signal = AbortSignal.any([this.#stop.signal, AbortSignal.timeout(ANSWER_MS)])
    const request = new TextEncoder().encode(REQUEST + JSON.stringify(asked))
    const bytes = await this.#options.network.fetch(target, request, signal)
    const { contacts, receipt, ...inputs } = answerSchema.parse(JSON.parse(new TextDecoder().decode(bytes)))
    return { contacts, inputs, receipt }
  }
}

/** The share of a sum that rounding alone explains. */
function explained({ norms }: SumAudit): number {
  return norms === undefined ? Number.POSITIVE_INFINITY : norms.allowed / norms.sum
}

function failureOf(error: Error): KeptAnswer {
  if (error instanceof SyntaxError || error instanceof z.ZodError) return { reason: 'its answer is malformed' }
  // Peers of earlier versions do not answer.
  if (error instanceof FetchError && error.isUnanswered) return { reason: NOT_LISTED, isPrivate: true }
  return { reason: `it does not answer: ${error.message}` }
}

/** Whether the arrays have the lengths that the learner expects, and no weight is negative. */
function isConsistent({ size, rows }: Pick<InputGroup, 'size' | 'rows'>): boolean {
  const { labels, offsets, indices, values, ...others } = rows
  if (labels?.values.length !== size || offsets?.values.length !== size + 1) return false
  const isOrdered = offsets.values.every(
    (offset, i) => Number.isInteger(offset) && offset >= (offsets.values[i - 1] ?? 0)
  )
  const entries = offsets.values[size]
  return (
    isOrdered &&
    offsets.values[0] === 0 &&
    entries === indices?.values.length &&
    entries === values?.values.length &&
    (others.weights?.values ?? []).every(weight => weight >= 0) &&
    Object.values(others).every(({ values: array }) => array.length === size)
  )
}
