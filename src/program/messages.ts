/**
 * The messages between a peer and a program that computes its gradients, over a socket: a length of 4 bytes, a kind of one byte,
 * and the content. `docs/reference/external.md` describes them for programs in any language. Numbers are little-endian.
 */
import * as z from 'zod'
import { CodedError } from '../base/errors.js'
import type { ValueOf } from '../base/schema.js'

/** Version of these messages. A peer refuses programs of other versions. */
export const PROGRAM_VERSION = 1

/** Kinds of messages: `join`, `add`, `average` and `bye` of the program, the others of the peer. */
export const kinds = {
  join: 1,
  welcome: 2,
  refused: 3,
  add: 4,
  added: 5,
  average: 6,
  averaged: 7,
  changed: 8,
  bye: 9
} as const

/** What became of the gradients of an `add`. */
export const outcomes = {
  used: 0,
  /** They are of an old predictor, so the inputs have to be learned again. */
  stale: 1,
  /** The inputs are not those that come next. */
  duplicate: 2,
  /** They are not finite. */
  invalid: 3
} as const

/** A program, or what it sends, does not fit. */
export class ProgramError extends CodedError {
  static override readonly code = 'ERR_PROGRAM'
}

const MAX_TEXT = 200
/** Maximum length of a message: the layout of a model with some 100,000 parameters. */
const MAX_MESSAGE = 1 << 24
const HEAD = 5

const position = z.number().int().min(0)

/** What a program says of itself when it joins. */
const joinSchema = z.object({
  version: z.literal(PROGRAM_VERSION, { error: `the peer speaks version ${PROGRAM_VERSION}` }),
  /** For messages to people. */
  name: z.string().min(1).max(MAX_TEXT).default('the program'),
  fingerprint: z.string().max(MAX_TEXT).default(''),
  /** Path of the file that both have mapped. */
  memory: z.string().min(1),
  blocks: z
    .array(
      z.object({
        name: z.string().min(1).max(MAX_TEXT),
        length: position.min(1),
        vectors: z.array(z.tuple([position, position])).optional()
      })
    )
    .min(1)
})
/**
 * What a program says of itself and of its model.
 * @interface
 */
export type Join = ValueOf<typeof joinSchema>

/** @throws ProgramError */
export function parseJoin(content: Uint8Array): Join {
  let value: unknown
  try {
    value = JSON.parse(new TextDecoder().decode(content))
  } catch (error) {
    throw new ProgramError(`the message of the program is no JSON (${(error as Error).message})`)
  }
  const { success, data, error } = joinSchema.safeParse(value)
  if (!success) {
    const [{ path, message }] = error.issues
    throw new ProgramError(`${path.join('.') || 'the message'}: ${message}`)
  }
  const names = new Set(data.blocks.map(({ name }) => name))
  if (names.size < data.blocks.length) throw new ProgramError('blocks: two of them have the same name')
  return data
}

/** Gradients that a program hands over: a sum over inputs. */
export interface Add {
  /** Which of the two sums of the file. */
  readonly slot: number
  /** The generation of the parameters at which they were computed. */
  readonly generation: number
  /** Number of the first input; the others follow it. */
  readonly first: number
  /** Number of inputs; 0 only asks for the newest predictor. */
  readonly count: number
  /** Mean loss of the inputs. */
  readonly loss: number
}

const ADD_BYTES = 25

/** @throws ProgramError */
export function parseAdd(content: Uint8Array): Add {
  if (content.length !== ADD_BYTES) throw new ProgramError(`an add has ${ADD_BYTES} bytes, not ${content.length}`)
  const view = viewOf(content)
  const [slot, first] = [view.getUint8(0), Number(view.getBigInt64(5, true))]
  if (slot > 1) throw new ProgramError(`there are the sums 0 and 1, not ${slot}`)
  if (!(first >= 0 && first <= Number.MAX_SAFE_INTEGER)) throw new ProgramError(`no input has the number ${first}`)
  return {
    slot,
    first,
    generation: view.getUint32(1, true),
    count: view.getUint32(13, true),
    loss: view.getFloat64(17, true)
  }
}

/** The answer to an `add`. */
export interface Added {
  readonly outcome: number
  /** The newest generation: its parameters are those with the number of its last bit in the file. */
  readonly generation: number
  readonly updates: number
  /** Number of the next new input. */
  readonly next: number
  /** Inputs [first, end) that are to be learned again; none if both are equal. */
  readonly again: readonly [first: number, end: number]
  /** Number of gradients that are missing for an update. */
  readonly missing: number
  /** 32 hexadecimal digits. */
  readonly digest: string
}

/** An `added`, with its head. */
export function encodeAdded({ outcome, generation, updates, next, again, missing, digest }: Added): Uint8Array {
  const content = new Uint8Array(61)
  const view = viewOf(content)
  view.setUint8(0, outcome)
  view.setUint32(1, generation, true)
  for (const [i, value] of [updates, next, ...again, missing].entries())
    view.setBigInt64(5 + 8 * i, BigInt(value), true)
  for (let i = 0; i < 16; i++) content[45 + i] = Number.parseInt(digest.slice(2 * i, 2 * i + 2), 16)
  return encodeMessage(kinds.added, content)
}

/** A message whose content is JSON, or empty. */
export function encodeJson(kind: number, value?: object): Uint8Array {
  return encodeMessage(kind, value === undefined ? undefined : new TextEncoder().encode(JSON.stringify(value)))
}

function encodeMessage(kind: number, content = new Uint8Array(0)): Uint8Array {
  const message = new Uint8Array(HEAD + content.length)
  viewOf(message).setUint32(0, content.length + 1, true)
  message[4] = kind
  message.set(content, HEAD)
  return message
}

/** Divides what arrives on a socket into messages. */
export class MessageReader {
  #rest = new Uint8Array(0)

  /** @returns the messages that are complete now @throws ProgramError if one is too long */
  push(bytes: Uint8Array): { readonly kind: number; readonly content: Uint8Array }[] {
    const all = new Uint8Array(this.#rest.length + bytes.length)
    all.set(this.#rest)
    all.set(bytes, this.#rest.length)
    const messages: { kind: number; content: Uint8Array }[] = []
    let at = 0
    while (all.length - at >= HEAD) {
      const length = viewOf(all).getUint32(at, true)
      if (length < 1 || length > MAX_MESSAGE)
        throw new ProgramError(`a message of ${length} bytes: it has 1 to ${MAX_MESSAGE}`)
      if (all.length - at < HEAD - 1 + length) break
      messages.push({ kind: all[at + 4], content: all.slice(at + HEAD, at + HEAD - 1 + length) })
      at += HEAD - 1 + length
    }
    this.#rest = all.slice(at)
    return messages
  }
}

function viewOf({ buffer, byteOffset, byteLength }: Uint8Array): DataView {
  return new DataView(buffer, byteOffset, byteLength)
}
