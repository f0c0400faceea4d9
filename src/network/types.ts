/**
 * Types of the module that the library's users see. They need no types of libp2p, whose declarations need those of browsers: a
 * program may be compiled without them.
 */

/** Severity of a log message. */
export type LogLevel = 'debug' | 'info' | 'warn' | 'error'
/** Receives log messages. */
export type Log = (level: LogLevel, message: string, fields: Readonly<Record<string, unknown>>) => void

/** A peer's identity: an Ed25519 key pair, made or decoded by the functions of `keys.ts`. */
export interface IdentityKey {
  readonly type: 'Ed25519'
  readonly raw: Uint8Array
}
