/** The registry of commands. A new command is one file and one line here. */
import type { Command } from 'commander'
import type { ReaderThread } from '../../data/index.js'

interface CommandEntry {
  /** Heading of `admb --help`. */
  readonly group: 'Start' | 'Learn' | 'Use' | 'Data' | 'Network' | 'Research'
  /** One line for `admb --help`. */
  readonly summary: string
  /**
   * Loads the function that adds the command to the program. Called only for the command that runs, because some commands
   * load megabytes of libraries.
   * @param words the command with its arguments
   */
  load(words: readonly string[]): Promise<(program: Command) => Command>
}

export const commands = {
  demo: {
    group: 'Start',
    summary: 'run five peers on this machine, with faults',
    load: async () => (await import('./demo.js')).demoCommand
  },
  peer: {
    group: 'Start',
    summary: 'start a peer that learns together with others',
    load: async () => (await import('./peer.js')).peerCommand
  },
  worker: {
    group: 'Start',
    summary: 'lend the device of this machine to a peer',
    load: async () => (await import('./worker.js')).workerCommand
  },
  doctor: {
    group: 'Start',
    summary: 'check this machine, or the connection to a peer',
    load: async () => (await import('./doctor.js')).doctorCommand
  },
  train: {
    group: 'Learn',
    summary: 'train on a stream in one process, without a network',
    async load(words) {
      // The thread starts while the command is loaded.
      const reader = words[0] === 'train' ? await prestartReader(words) : undefined
      const { trainCommand } = await import('./train.js')
      return program => trainCommand(program, reader)
    }
  },
  tune: {
    group: 'Learn',
    summary: 'find the update rule, average and batch that suit a stream',
    load: async () => (await import('./tune.js')).tuneCommand
  },
  plan: {
    group: 'Learn',
    summary: "plan a network's execution within the memory of a device",
    load: async () => (await import('./plan.js')).planCommand
  },
  eval: {
    group: 'Use',
    summary: 'evaluate a stored predictor on labelled data',
    load: async () => (await import('./eval.js')).evalCommand
  },
  predict: {
    group: 'Use',
    summary: 'predict inputs with a stored predictor',
    load: async () => (await import('./predict.js')).predictCommand
  },
  generate: {
    group: 'Use',
    summary: 'continue a text by a language model',
    load: async () => (await import('./generate.js')).generateCommand
  },
  export: {
    group: 'Use',
    summary: 'write a stored predictor for other programs',
    load: async () => (await import('./export.js')).exportCommand
  },
  explain: {
    group: 'Use',
    summary: 'print the weights of a stored linear model',
    load: async () => (await import('./explain.js')).explainCommand
  },
  schema: {
    group: 'Data',
    summary: 'print what the columns and the label of data mean',
    load: async () => (await import('./schema.js')).schemaCommand
  },
  tokenizer: {
    group: 'Data',
    summary: 'train a tokenizer for networks that read text',
    load: async () => (await import('./tokenizer.js')).tokenizerCommand
  },
  split: {
    group: 'Network',
    summary: 'deal a stream of inputs to peers',
    load: async () => (await import('./split.js')).splitCommand
  },
  status: {
    group: 'Network',
    summary: 'print the status of a running peer',
    load: async () => (await import('./status.js')).statusCommand
  },
  audit: {
    group: 'Network',
    summary: 'check that every input of stopped peers was used once',
    load: async () => (await import('./audit.js')).auditCommand
  },
  keygen: {
    group: 'Network',
    summary: 'generate network keys, HTTP tokens and identities',
    load: async () => (await import('./keygen.js')).keygenCommand
  },
  invite: {
    group: 'Network',
    summary: 'invite peers to a network with an allow-list',
    load: async () => (await import('./invite.js')).inviteCommand
  },
  regret: {
    group: 'Research',
    summary: 'compare progressive losses with the best fixed predictor in hindsight',
    load: async () => (await import('./regret.js')).regretCommand
  },
  sim: {
    group: 'Research',
    summary: 'simulate networks with faults and measure regret',
    load: async () => (await import('./sim.js')).simCommand
  }
} as const satisfies Readonly<Record<string, CommandEntry>>

/** The thread that reads a large file of `--data`, whatever the other options are; undefined if there is none. */
async function prestartReader(words: readonly string[]): Promise<ReaderThread | undefined> {
  const at = words.indexOf('--data')
  if (at < 0 || at + 1 === words.length) return undefined
  return (await import('../../data/threads/reader.js')).startReader({ data: words[at + 1] })
}

export type CommandName = keyof typeof commands
export const commandNames = Object.keys(commands) as readonly CommandName[]

/** Adds a command with all its options. @param words the command that runs, with its arguments @default none runs */
export async function addCommand(program: Command, name: CommandName, words: readonly string[] = []): Promise<Command> {
  const register = await commands[name].load(words)
  return describeCommand(register(program), name)
}

/** Gives a command its line in `admb --help`. */
export function describeCommand(command: Command, name: CommandName): Command {
  const { group, summary } = commands[name]
  return command.description(summary).helpGroup(`${group}:`)
}
