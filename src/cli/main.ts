#!/usr/bin/env node
/** The command `admb`: finds the command, lets it run, and turns every error into one line and an exit code. */
import { readFileSync } from 'node:fs'
import { Command } from 'commander'
import { explain } from './errors.js'
import { applyConfig } from './options/config.js'
import { arrangeHelp, HELP_ALL } from './options/help.js'

type Register = (program: Command) => Command

/** Loaded only when needed: some commands bring megabytes of libraries along. */
const commands: Record<string, () => Promise<Register>> = {
  demo: async () => (await import('./commands/demo.js')).demoCommand,
  peer: async () => (await import('./commands/peer.js')).peerCommand,
  train: async () => (await import('./commands/train.js')).trainCommand,
  plan: async () => (await import('./commands/plan.js')).planCommand,
  eval: async () => (await import('./commands/eval.js')).evalCommand,
  predict: async () => (await import('./commands/predict.js')).predictCommand,
  regret: async () => (await import('./commands/regret.js')).regretCommand,
  status: async () => (await import('./commands/status.js')).statusCommand,
  keygen: async () => (await import('./commands/keygen.js')).keygenCommand,
  doctor: async () => (await import('./commands/doctor.js')).doctorCommand,
  sim: async () => (await import('./commands/sim.js')).simCommand
}

function version(): string {
  const file = new URL('../../../package.json', import.meta.url)
  return (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version
}

async function main(words: string[]): Promise<void> {
  const program = new Command('admb')
    .description('peers that learn one predictor together, without a master')
    .version(version())
    .exitOverride()
    .configureOutput({ outputError: () => undefined })
    .hook('preAction', (_program, action) => applyConfig(action))
  // Shells complete every option.
  arrangeHelp(program, words.includes(HELP_ALL) || words[0] === 'complete')
  const asked = words.find(word => Object.hasOwn(commands, word))
  const names = asked === undefined || words[0] === 'help' ? Object.keys(commands) : [asked]
  for (const name of names) (await commands[name]())(program)
  if (words[0] === 'complete' || asked === undefined) {
    if ((await import('./options/completion.js')).addCompletion(program, words)) return
  }
  const plain = words.map(word => (word === HELP_ALL ? '--help' : word))
  await program.parseAsync(plain, { from: 'user' })
}

/** Whoever read the output (`| head`) has had enough. */
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  process.exit(error.code === 'EPIPE' ? 0 : 1)
})

main(process.argv.slice(2))
  .catch((error: unknown) => {
    const { line, exitCode } = explain(error)
    if (line !== undefined) process.stderr.write(`admb: ${line}\n`)
    process.exitCode = exitCode
  })
  // libp2p leaves timers of a second behind; nothing is waited for but the output.
  .finally(() => process.stdout.write('', () => process.exit()))
