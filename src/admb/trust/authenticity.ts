/**
 * Checks who has made the predictors that a node adopts and who has contributed to them and to
 * sums, signs own headers, and keeps the proofs against makers that have signed different headers
 * with one name. Signatures are verified when a predictor is to be adopted or a sum used, and each
 * one once.
 */
import { type ContributorTable, type Coverage, covered } from '../state/coverage.js'
import type { Header } from '../state/predictor.js'
import { formatId, type PredictorId } from '../state/predictor-id.js'
import { FrameError } from '../wire/bytes.js'
import type { Attestation, ReceivedFrame } from '../wire/frame.js'
import type { Saved } from '../wire/saved.js'
import { decodeProof, type Equivocation, type Signed } from './equivocation.js'
import {
  areEqual,
  attestedBytes,
  type Claims,
  certifiedBytes,
  laterStatementOf,
  type Signer,
  signedBytes,
  statementOf
} from './signatures.js'

/** Number of headers that are remembered, and of those that may be more. */
const MEMORY = 2048
const SPARE = 256
/** Number of proofs that are kept. Further makers are not excluded. */
const MAX_PROOFS = 256

type Checked = Pick<ReceivedFrame, 'id' | 'headers' | 'attestation'>
const NO_CLAIMS: Claims = new Map()

export class Authenticity {
  readonly #signer: Signer
  readonly #self: string
  readonly #table: ContributorTable
  /** Verified headers by the name of their predictor, oldest first. */
  readonly #verified = new Map<string, Signed>()
  /** Proofs by maker. */
  readonly #proofs = new Map<string, Equivocation>()
  #new: Equivocation[] = []

  constructor(signer: Signer, self: string, table: ContributorTable) {
    this.#signer = signer
    this.#self = self
    this.#table = table
  }

  /** Signs a run of this node. */
  certify(run: number): void {
    this.#table.certify(run, this.#signer.sign(certifiedBytes(this.#table.contributor(run))))
  }

  /** Number of certificates ever known. */
  get certified(): number {
    return this.#table.certified
  }

  /** Whether the certificate of a contributor is known. */
  isCertified(contributor: number): boolean {
    return this.#table.certificate(contributor) !== undefined
  }

  /**
   * Checks that each contributor is a run that its peer has signed, and that no peer has two.
   * Verified certificates are kept.
   * @throws FrameError
   */
  checkCoverage(coverage: Coverage, claims: Claims): void {
    const origins = new Set<string>()
    for (const contributor of covered(coverage)) {
      const run = this.#table.contributor(contributor)
      const { origin } = run
      if (origins.has(origin)) throw new FrameError(`gradients of two runs of ${origin} in one sum`)
      origins.add(origin)
      if (this.#table.certificate(contributor) !== undefined) continue
      const certificate = claims.get(contributor)
      if (certificate === undefined) throw new FrameError(`gradients of ${origin} without a certificate of its run`)
      if (!this.#signer.verify(origin, certifiedBytes(run), certificate))
        throw new FrameError(`${origin} has not signed the run whose gradients a sum contains`)
      this.#table.certify(contributor, certificate)
    }
  }

  /** A header of this node, signed when the signature is read, as many are never sent. */
  signed(header: Header): Header {
    const signer = this.#signer
    const statement = laterStatementOf(header, this.#table, signer)
    let signature: Uint8Array | undefined
    const signed = {
      get rest() {
        return statement().rest
      },
      get signature() {
        signature ??= signer.sign(signedBytes(statement()))
        return signature
      }
    }
    this.#remember(formatId(header.id), signed)
    return {
      ...header,
      get signature() {
        return signed.signature
      }
    }
  }

  /** Headers that can be sent: those before the first one without a signature, newest first. */
  sendable(headers: readonly Header[]): readonly Header[] {
    const end = headers.findIndex(header => !('signature' in header))
    return end < 0 ? headers : headers.slice(0, end)
  }

  /**
   * Attestation of a predictor that is sent without a header; undefined if none is needed.
   * @param received attestation that came with it
   */
  attestation(id: PredictorId, received: Attestation | undefined): Attestation | undefined {
    if (id.updates === 0) return undefined
    return received ?? { signer: this.#self, signature: this.#signer.sign(attestedBytes(id)) }
  }

  /**
   * Checks the signatures of a predictor that is to be adopted.
   * @param claims of the contributors to it
   * @throws FrameError if one is missing or wrong
   */
  check({ id, headers, attestation }: Checked, claims: Claims): void {
    if (id.updates === 0) return
    if (headers.length > 0) for (const header of headers) this.#check(header, claims)
    else if (attestation === undefined) throw new FrameError(`predictor ${formatId(id)} without a signature`)
    else if (!this.#signer.verify(attestation.signer, attestedBytes(id), attestation.signature))
      throw new FrameError(`${attestation.signer} has not signed predictor ${formatId(id)}`)
  }

  /**
   * A predictor from this node's storage, without signatures that are not valid, such as those of a
   * network with another id.
   */
  restored({ predictor, lineage, attestation, claims = NO_CLAIMS }: Saved): Saved {
    const headers = lineage.map(header => {
      const { signature, ...unsigned } = header
      return signature === undefined || this.#passes({ id: header.id, headers: [header] }, claims) ? header : unsigned
    })
    const isAttested = attestation && this.#passes({ id: predictor.id, headers: [], attestation }, claims)
    return { predictor, lineage: headers, ...(isAttested && { attestation }) }
  }

  #passes(predictor: Checked, claims: Claims): boolean {
    try {
      this.check(predictor, claims)
      return true
    } catch (error) {
      if (error instanceof FrameError) return false
      throw error
    }
  }

  /**
   * Compares the header of a predictor that is not adopted with the known one of this name.
   * @throws FrameError
   */
  compare(header: Header | undefined, claims: Claims): void {
    if (header && this.#verified.has(formatId(header.id))) this.#check(header, claims)
  }

  /** Whether there is a proof against the maker. */
  isExcluded(maker: string): boolean {
    return this.#proofs.size > 0 && this.#proofs.has(maker)
  }

  get proofs(): Iterable<Equivocation> {
    return this.#proofs.values()
  }

  /** Reads a proof that a neighbour has sent. @throws FrameError */
  receiveProof(bytes: Uint8Array, session: number): void {
    const proof = decodeProof(bytes, session, this.#signer, maker => this.isExcluded(maker))
    if (proof) this.#addProof(proof)
  }

  /** The proofs against makers since the last call. */
  takeNew(): readonly Equivocation[] {
    const proofs = this.#new
    if (proofs.length > 0) this.#new = []
    return proofs
  }

  #check(header: Header, claims: Claims): void {
    const signer = this.#signer
    const { id, signature } = header
    const key = formatId(id)
    if (signature === undefined) throw new FrameError(`header of ${key} without a signature`)
    this.checkCoverage(header.coverage, claims)
    const statement = statementOf(header, this.#table, signer)
    const known = this.#verified.get(key)
    const isSame = known !== undefined && areEqual(known.rest, statement.rest)
    if (isSame && areEqual(known.signature, signature)) return
    if (!signer.verify(id.origin, signedBytes(statement), signature))
      throw new FrameError(`${id.origin} has not signed the header of ${key}`)
    const signed = { rest: statement.rest, signature }
    if (known === undefined) this.#remember(key, signed)
    else if (!isSame) this.#addProof({ maker: id.origin, name: statement.name, statements: [known, signed] })
  }

  #remember(key: string, signed: Signed): void {
    this.#verified.set(key, signed)
    // Many at a time, as finding the first entry of a map takes time for each that was deleted before.
    if (this.#verified.size <= MEMORY + SPARE) return
    for (const oldest of this.#verified.keys()) {
      if (this.#verified.size <= MEMORY) return
      this.#verified.delete(oldest)
    }
  }

  #addProof(proof: Equivocation): void {
    if (this.#proofs.has(proof.maker) || this.#proofs.size >= MAX_PROOFS) return
    this.#proofs.set(proof.maker, proof)
    this.#new.push(proof)
  }
}
