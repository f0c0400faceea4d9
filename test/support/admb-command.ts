/** Runs commands, most of them in this process: starting one takes longer than what most of them do. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { runProgram } from '../../src/cli/program.js'

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

/** The command that runs in this process. Its output is what is written meanwhile, so there is one at a time. */
let running: Promise<unknown> = Promise.resolve()

/** Runs the command and returns the last object that it prints with `--json`. Fails if its exit code is not 0. */
export async function admbJson(args: readonly string[], setting?: CommandSetting) {
  const { stdout, stderr, code } = await admb([...args, '--json'], setting)
  assert.equal(code, 0, stderr)
  return JSON.parse(stdout.trim().split('\n').at(-1) as string)
}

/** Runs a command in this process or, if it has standard input or other variables, in its own. */
export function admb(args: readonly string[], setting?: CommandSetting): Promise<CommandResult> {
  if (setting?.input !== undefined || setting?.env !== undefined) return admbProcess(args, setting)
  const result = running.then(() => runHere(args))
  running = result.catch(() => undefined)
  return result
}

async function runHere(args: readonly string[]): Promise<CommandResult> {
  const written = { stdout: '', stderr: '' }
  const restore = (['stdout', 'stderr'] as const).map(name => {
    const stream = process[name]
    const { write } = stream
    stream.write = (text: string | Uint8Array, ...rest: unknown[]) => {
      written[name] += typeof text === 'string' ? text : new TextDecoder().decode(text)
      const done = rest.at(-1)
      if (typeof done === 'function') process.nextTick(done as () => void)
      return true
    }
    return () => {
      stream.write = write
    }
  })
  try {
    const exitCode = await runProgram(args)
    return { ...written, code: exitCode === 0 ? Number(process.exitCode ?? 0) : exitCode }
  } finally {
    process.exitCode = undefined
    for (const undo of restore) undo()
  }
}

/** Runs a command in a process of its own. */
export function admbProcess(
  args: readonly string[],
  { input = '', env = {} }: CommandSetting = {}
): Promise<CommandResult> {
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
