/**
 * Noise for networks that take invitations. An invited peer is unknown to the others, so it shows its admission on the
 * encrypted connection before anything else, and libp2p's connection gater decides afterwards. Both ends announce
 * that they do so in the names of stream multiplexers that noise exchanges; others ignore names they do not know.
 */
import type { ConnectionEncrypter, MessageStream, SecureConnectionOptions, SecuredConnection } from '@libp2p/interface'
import { type NoiseComponents, type NoiseExtensions, noise } from '@libp2p/noise'
import { lpStream } from '@libp2p/utils'
import * as z from 'zod'
import { admissionSchema } from './invitations.js'
import type { Answer, Membership } from './membership.js'

const CAPABILITY = '/admb/invitations/1'
/** Limits of messages, in bytes. An answer carries the allow-list: 55 bytes for each peer. */
const PRESENTED_BYTES = 8 * 1024
const ANSWER_BYTES = 1024 * 1024
/** Time in ms that the other end has to read a refusal. */
const REFUSAL_MS = 2000

/** What precedes the reason in the message of a refused dial; libp2p keeps the message only. */
export const invitationRefused = 'invitation refused: '

/** The declaration of the package lacks a field. */
interface Extensions extends NoiseExtensions {
  readonly streamMuxers: readonly string[]
}

const peerIds = z.array(z.string().max(64))
const answerSchema = z.union([z.strictObject({ refused: z.string().max(500) }), z.strictObject({ listed: peerIds })])

/** @param membership undefined for plain noise */
export function admittingNoise(membership: Membership | undefined) {
  return (components: NoiseComponents): ConnectionEncrypter<NoiseExtensions> =>
    membership === undefined ? noise()(components) : new AdmittingNoise(components, membership)
}

class AdmittingNoise implements ConnectionEncrypter<NoiseExtensions> {
  readonly protocol: string
  readonly #components: NoiseComponents
  readonly #membership: Membership
  readonly #plain: ConnectionEncrypter<NoiseExtensions>
  /** Made when it is needed, because the multiplexers are registered after it. */
  #announcing: ConnectionEncrypter<NoiseExtensions> | undefined

  constructor(components: NoiseComponents, membership: Membership) {
    this.#components = components
    this.#membership = membership
    this.#plain = noise()(components)
    this.protocol = this.#plain.protocol
  }

  async secureOutbound(connection: MessageStream, options?: SecureConnectionOptions) {
    const presented = this.#membership.presented
    if (presented === undefined) return this.#plain.secureOutbound(connection, options)
    const secured = await this.#announce().secureOutbound(connection, options)
    if (!takesInvitations(secured)) return secured
    const messages = lpStream(secured.connection, { maxDataLength: ANSWER_BYTES })
    await messages.write(encode(presented), options)
    const answer = answerSchema.parse(decode(await messages.read(options)))
    if ('refused' in answer) throw new Error(`${invitationRefused}${answer.refused.replace(/[^\x20-\x7e]/g, '?')}`)
    await this.#membership.accept(secured.remotePeer.toString(), answer.listed)
    messages.unwrap()
    return secured
  }

  async secureInbound(connection: MessageStream, options?: SecureConnectionOptions) {
    const secured = await this.#announce().secureInbound(connection, options)
    if (!takesInvitations(secured)) return secured
    const messages = lpStream(secured.connection, { maxDataLength: PRESENTED_BYTES })
    const presented = admissionSchema.parse(decode(await messages.read(options)))
    const answer: Answer = await this.#membership.answer(secured.remotePeer.toString(), presented)
    await messages.write(encode(answer), options)
    if ('refused' in answer) {
      // The other end closes the connection.
      await messages.read({ signal: AbortSignal.timeout(REFUSAL_MS) }).catch(() => undefined)
      throw new Error(`${invitationRefused}${answer.refused}`)
    }
    messages.unwrap()
    return secured
  }

  #announce(): ConnectionEncrypter<NoiseExtensions> {
    const streamMuxers = [...this.#components.upgrader.getStreamMuxers().keys(), CAPABILITY]
    const extensions: Extensions = { webtransportCerthashes: [], streamMuxers }
    this.#announcing ??= noise({ extensions })(this.#components)
    return this.#announcing
  }
}

function takesInvitations({ remoteExtensions }: SecuredConnection<NoiseExtensions>): boolean {
  return (remoteExtensions as Extensions | undefined)?.streamMuxers.includes(CAPABILITY) ?? false
}

function encode(message: unknown): Uint8Array {
  return new TextEncoder().encode(JSON.stringify(message))
}

function decode(message: { subarray(): Uint8Array }): unknown {
  return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(message.subarray()))
}
