/** Errors of the state directory, and of the marker in it. Each message states in one line what failed and what to do. */
import { CodedError, fileProblem } from '../base/errors.js'

/** Another process uses the directory. */
export class StateInUseError extends CodedError {
  static override readonly code = 'ERR_STATE_IN_USE'
  constructor(directory: string) {
    super(`${directory} is in use by another admb process: stop it, or use another --dir`)
  }
}

/** The directory contains no state. */
export class MissingStateError extends CodedError {
  static override readonly code = 'ERR_STATE_MISSING'
  constructor(directory: string) {
    super(`${directory} contains no admb state: check the --dir option`)
  }
}

/** The content of the directory is damaged or foreign. */
export class DamagedStateError extends CodedError {
  static override readonly code = 'ERR_STATE_DAMAGED'
  constructor(directory: string, what: string) {
    super(
      `the state in ${directory} is damaged or not from admb (${what}): restore it from a backup, or move it away to start as a new peer`
    )
  }
}

/** The predictor of the directory is in a layer file, which peers do not read. */
export class LayeredStateError extends CodedError {
  static override readonly code = 'ERR_STATE_LAYERED'
  constructor(directory: string) {
    super(
      `${directory} holds its predictor in a layer file (admb train --store disk), which peers do not read: export it (admb export --dir ${directory} --out FOLDER), and start with --weights FOLDER`
    )
  }
}

/** The state belongs to another model. */
export class ModelMismatchError extends CodedError {
  static override readonly code = 'ERR_STATE_MODEL'
  constructor(directory: string, stored: string, given: string) {
    super(
      `${directory} contains a predictor of another model (${difference(stored, given)}): use another --dir or the same options`
    )
  }
}

/** The state belongs to another network. */
export class NetworkMismatchError extends CodedError {
  static override readonly code = 'ERR_STATE_NETWORK'
  constructor(directory: string, stored: string, given: string) {
    super(
      `${directory} belongs to network ${stored}, and this peer is started for network ${given}: use another --dir, or --network-id ${stored}`
    )
  }
}

/** The directory cannot be written: full, read-only, or not permitted. */
export class StateWriteError extends CodedError {
  static override readonly code = 'ERR_STATE_WRITE'
  constructor(directory: string, cause: unknown) {
    const inner = cause instanceof Error && cause.cause instanceof Error ? cause.cause : cause
    const problem = fileProblem(inner)
    const remedy = /read-only/.test(problem)
      ? 'give a --dir on another one'
      : 'free space or correct its permissions, then restart'
    super(`cannot write the state in ${directory} (${problem}): ${remedy}`)
  }
}

/** Lists the fields in which two models differ, with both values. */
function difference(stored: string, given: string): string {
  const a = JSON.parse(stored) as Record<string, unknown>
  const b = JSON.parse(given) as Record<string, unknown>
  const names = [...new Set([...Object.keys(a), ...Object.keys(b)])].filter(
    key => JSON.stringify(a[key]) !== JSON.stringify(b[key])
  )
  return names.map(key => `${key} ${JSON.stringify(a[key])} stored, ${JSON.stringify(b[key])} given`).join(', ')
}

/** The content of the marker of a state directory. */
export const MARKER = 'admb.json'
const FORMAT = 1

export function markerText(): string {
  return `${JSON.stringify({ format: FORMAT })}\n`
}

/** @throws DamagedStateError */
export function parseMarker(directory: string, content: string): object {
  let marker: { format?: unknown }
  try {
    marker = JSON.parse(content)
  } catch {
    throw new DamagedStateError(directory, `${MARKER} is not valid JSON`)
  }
  if (marker.format !== FORMAT)
    throw new DamagedStateError(
      directory,
      `${MARKER} has format ${marker.format}, and this version reads format ${FORMAT}: use the version that wrote it`
    )
  return marker
}

/** The folder of the layer file, in which `admb train --store disk` keeps a predictor. */
export function layersFolder(directory: string): string {
  return `${directory}/layers`
}
