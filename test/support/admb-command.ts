/** Runs the built command line. */
import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'

/** The built command. */
export const MAIN = fileURLToPath(new URL('../../src/cli/main.js', import.meta.url))

export interface CommandResult {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

/** @param input on standard input */
export function admb(args: readonly string[], input = ''): Promise<CommandResult> {
  const child = spawn(process.execPath, [MAIN, ...args], { timeout: 30_000 })
  let stdout = ''
  let stderr = ''
  child.stdout.on('data', text => {
    stdout += text
  })
  child.stderr.on('data', text => {
    stderr += text
  })
  child.stdin.on('error', () => undefined)
  child.stdin.end(input)
  return new Promise(resolve => child.once('close', code => resolve({ code, stdout, stderr })))
}
