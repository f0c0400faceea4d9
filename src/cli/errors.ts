/** Errors that the command line makes itself, and how any error becomes one clear line and an exit code. */

import { CommanderError } from 'commander'
import { CodedError } from '../base/errors.js'

/** The command was called in a way that makes no sense; exit code 2. */
export class UsageError extends CodedError {
  static override readonly code = 'ERR_USAGE'
}

/** A signal ended a command that had more to do. */
export class InterruptedError extends CodedError {
  static override readonly code = 'ERR_INTERRUPTED'
  constructor(signal: string) {
    super(`stopped by ${signal} before the end`)
  }
}

/** Errors of other rooms that mean wrong usage rather than failure. */
const USAGE = new Set([
  'UsageError',
  'OptionError',
  'ModelError',
  'StreamOptionsError',
  'OverlayOptionError',
  'ScenarioError'
])

/** @returns the line for stderr (none if it was printed already), with the error's code, and the exit code */
export function explain(error: unknown): { readonly line: string | undefined; readonly exitCode: number } {
  if (error instanceof CommanderError) return explainParsing(error)
  if (!(error instanceof Error)) return { line: String(error), exitCode: 1 }
  const line = isBug(error)
    ? `this is a bug in admb, please report it: ${error.stack}`
    : oneLine(error.message) + codeOf(error)
  return { line, exitCode: USAGE.has(error.name) ? 2 : 1 }
}

/** Whether the program is at fault, and not what it was given. */
export function isBug(error: Error): boolean {
  return error instanceof TypeError || error instanceof ReferenceError || error.name === 'AssertionError'
}

/** The code by which the page about errors lists it. */
function codeOf(error: Error & { readonly code?: unknown }): string {
  return typeof error.code === 'string' && error.code.startsWith('ERR_') ? ` (${error.code})` : ''
}

/** What the option parser has to say. Help and version were printed already. */
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
