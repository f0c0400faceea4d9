/** Runs the built command line. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'

/** The built command. */
export const MAIN = fileURLToPath(new URL('../../program/admb.js', import.meta.url))

export interface CommandResult {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

interface CommandSetting {
  /** Standard input. */
  readonly input?: string
  /** Variables besides those of this process. */
  readonly env?: NodeJS.ProcessEnv
}

/** Runs the command and returns the last object that it prints with `--json`. Fails if its exit code is not 0. */
export async function admbJson(args: readonly string[], setting?: CommandSetting) {
  const { stdout, stderr, code } = await admb([...args, '--json'], setting)
  assert.equal(code, 0, stderr)
  return JSON.parse(stdout.trim().split('\n').at(-1) as string)
}

export function admb(args: readonly string[], { input = '', env = {} }: CommandSetting = {}): Promise<CommandResult> {
  const child = spawn(process.execPath, [MAIN, ...args], { timeout: 60_000, env: { ...process.env, ...env } })
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
