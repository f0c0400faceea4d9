/** The command line's own errors, and the mapping of any error to one line and an exit code. */
import type { CommanderError } from 'commander'
import { CodedError, fileProblem } from '../base/errors.js'

/** Wrong usage of a command; exit code 2. */
export class UsageError extends CodedError {
  static override readonly code = 'ERR_USAGE'
}

/** Standard output cannot be written. */
export class OutputError extends CodedError {
  static override readonly code = 'ERR_OUTPUT'
  constructor(cause: Error) {
    super(`the output cannot be written (${fileProblem(cause)}): free space on the disk`)
  }
}

/** A signal ended a command early. */
export class InterruptedError extends CodedError {
  static override readonly code = 'ERR_INTERRUPTED'
  constructor(signal: string) {
    super(`stopped by ${signal} before the end`)
  }
}

/** Errors of other modules that mean wrong usage rather than failure. */
const USAGE = new Set([
  'UsageError',
  'OptionError',
  'ModelError',
  'StreamOptionsError',
  'OverlayOptionError',
  'ScenarioError'
])

/** @returns the line for stderr with the error's code (undefined if it is already printed), and the exit code */
export function explain(error: unknown): { readonly line: string | undefined; readonly exitCode: number } {
  if (!(error instanceof Error)) return { line: String(error), exitCode: 1 }
  if (isParsingError(error)) return explainParsing(error)
  const line = isBug(error)
    ? `this is a bug in admb, please report it: ${error.stack}`
    : oneLine(ofSystem(error) ?? error.message) + codeOf(error)
  return { line, exitCode: USAGE.has(error.name) ? 2 : 1 }
}

/** By its code, so that the option parser is not loaded before it is needed. */
export function isParsingError(error: unknown): error is CommanderError {
  return (
    error instanceof Error && 'code' in error && typeof error.code === 'string' && error.code.startsWith('commander.')
  )
}

/** Whether the error is a bug of the program rather than wrong input. */
export function isBug(error: Error): boolean {
  return error instanceof TypeError || error instanceof ReferenceError || error.name === 'AssertionError'
}

/** The error of a system call that no one has expected; undefined for others. */
function ofSystem(error: Error & { readonly syscall?: unknown; readonly path?: unknown }): string | undefined {
  if (error.syscall === undefined) return undefined
  const what = typeof error.path === 'string' ? error.path : `the system's ${String(error.syscall)}`
  return `${what} failed (${fileProblem(error)}): check the path, its permissions and the free space`
}

/** The code that `docs/reference/errors.md` lists. */
function codeOf(error: Error & { readonly code?: unknown }): string {
  return typeof error.code === 'string' && error.code.startsWith('ERR_') ? ` (${error.code})` : ''
}

/** The option parser's message. Help and version are already printed. */
function explainParsing({ code, message, exitCode }: CommanderError): ReturnType<typeof explain> {
  const isPrinted = code === 'commander.version' || code.startsWith('commander.help')
  const line = isPrinted
    ? undefined
    : `${oneLine(message).replace(/^error: |\.$/g, '')}: add --help for the options (${UsageError.code})`
  return { line, exitCode: exitCode === 0 ? 0 : 2 }
}

function oneLine(text: string): string {
  return text.replace(/\s*\n\s*/g, ' ')
}
