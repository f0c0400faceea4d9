/** What tokens of HTTP are for: apart from the server's other options, because commands name roles before they load it. */
import { randomBytes } from 'node:crypto'
import { CodedError } from '../base/errors.js'

/** The roles, with what each may do. */
export const ROLES = {
  read: 'status, page and metrics',
  predict: 'predictions, and the predictor',
  learn: 'inputs to learn, and what predict may do',
  admin: 'everything'
} as const

/**
 * What a token is for. A token that `admb keygen token --role` makes names its role, so that a peer and its clients share one file
 * format; any other token is an administrator's.
 */
export type Role = keyof typeof ROLES

/** Requests a second by role. */
export type RoleRates = Readonly<Partial<Record<Role, number>>>

/** A generated token of a role that does not exist. */
export class UnknownRoleError extends CodedError {
  static override readonly code = 'ERR_HTTP_ROLE'
  constructor(role: string, roles: readonly string[]) {
    super(`a token has the unknown role ${role}: make one with admb keygen token --role ${roles.join('|')}`)
  }
}

const SECRET_BYTES = 32
/** A generated token: prefix, role, 32 random bytes. */
const GENERATED = /^admb_([a-z]+)_[\w-]{43}$/

export function generateToken(role: Role): string {
  return `admb_${role}_${randomBytes(SECRET_BYTES).toString('base64url')}`
}

/** @throws UnknownRoleError if another version has generated the token */
export function roleOf(token: string): Role {
  const role = GENERATED.exec(token)?.[1] ?? 'admin'
  if (!Object.hasOwn(ROLES, role)) throw new UnknownRoleError(role, Object.keys(ROLES))
  return role as Role
}
