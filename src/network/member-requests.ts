/** Requests with which peers exchange admissions; see docs/reference/protocol-network.md. */
import * as z from 'zod'
import { type MembershipRecords, recordsSchema } from './invitations.js'
import type { MembershipState } from './membership.js'
import type { Network } from './network.js'
import type { PeerTarget } from './options.js'

const stateSchema = recordsSchema.extend({ listed: z.optional(z.array(z.string())) })

/** What a request begins with. */
const KIND = 'members '

/**
 * Sends records to a peer that takes invitations.
 * @returns all records that it knows, if none are sent; else none
 * @throws NetworkError with the cause, or the signal's reason
 */
export async function exchangeMembers(
  network: Network,
  target: PeerTarget,
  records: MembershipRecords,
  signal: AbortSignal
): Promise<MembershipRecords> {
  const request = new TextEncoder().encode(KIND + JSON.stringify(records))
  return decodeMembers(new TextDecoder().decode(await network.fetch(target, request, signal)))
}

/** @returns undefined for another request @throws SyntaxError, ZodError if it is malformed */
export function decodeMemberRequest(request: Uint8Array): MembershipRecords | undefined {
  const text = new TextDecoder().decode(request)
  return text.startsWith(KIND) ? decodeMembers(text.slice(KIND.length)) : undefined
}

export function encodeMembers(records: MembershipRecords): Uint8Array {
  return new TextEncoder().encode(JSON.stringify(records))
}

/** @param text what `onSave` of a membership was given, as JSON @returns undefined if it is malformed */
export function decodeMembershipState(text: string): MembershipState | undefined {
  try {
    return stateSchema.parse(JSON.parse(text))
  } catch {
    return undefined
  }
}

function decodeMembers(text: string): MembershipRecords {
  return recordsSchema.parse(JSON.parse(text))
}
