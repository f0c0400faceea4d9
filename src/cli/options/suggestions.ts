/** What a word that the program does not know may mean: another program's name for an option or command, or a misspelt one. */
import { existsSync } from 'node:fs'
import type { Command, CommanderError } from 'commander'
import { nearest } from '../../base/errors.js'
import { UsageError } from '../errors.js'

/** Options of other programs of this kind, as `WORD …` for options of this one, of which the first that a command has is meant. */
const OPTIONS: readonly (readonly [meant: readonly string[], words: string, how?: string])[] = [
  [['http', 'listen'], 'port http-port web-port p', '--http HOST:PORT'],
  [['listen'], 'host bind address addr interface'],
  [['peer'], 'join connect bootstrap seeds master server hub url remote nodes neighbour neighbor'],
  [['rule'], 'lr learning-rate eta alpha step step-size stepsize rate0 l', '--rule NAME,step=NUMBER'],
  [['rule'], 'optimizer optimiser momentum adam sgd', '--rule NAME (--rule help lists them)'],
  [['passes'], 'epochs epoch n-epochs num-epochs iterations iters n-iter max-iter'],
  [['trust'], 'max-rate jump-signers whole-signers influence', '--trust bounded[,rate=N][,signers=N]'],
  [
    ['format'],
    'delimiter sep separator delim encoding decimal header no-header na',
    '--format NAME,KEY=VALUE,… (delimiter, encoding, decimal, header, na)'
  ],
  [['classes'], 'classes-max max-classes', '--classes N..MAX'],
  [['dimension'], 'no-constant', '--dimension N,constant=no'],
  [['period'], 'carry', '--period MS,carry=N'],
  [['local-steps'], 'local-momentum', '--local-steps H,momentum=NUMBER'],
  [['local-steps'], 'sum-bytes', '--local-steps H,bytes=NUMBER'],
  [['learner'], 'socket', '--learner external,socket=PATH'],
  [['schedule'], 'worker-token', '--schedule NAME,token=FILE'],
  [['peer'], 'mdns', '--peer mdns'],
  [['allow'], 'accept-invitations', '--allow FILE,invited'],
  [['http'], 'http-cert http-key', '--http PORT,cert=FILE,key=FILE'],
  [['http'], 'http-origin', '--http PORT,origin=URL'],
  [['http'], 'http-limits http-body http-rate', '--http PORT,body=MIB,rate=N'],
  [['join-page'], 'stun', '--join-page stun:HOST:PORT'],
  [
    ['schedule'],
    'microbatch stash workers',
    '--schedule NAME,KEY=VALUE,… (microbatch, stash, workers, bits, gradients)'
  ],
  [
    ['schema'],
    'categorical weight id interactions text class-weights target target-scale',
    '--schema FILE, which admb schema writes with this option'
  ],
  [['shuffle-window'], 'shuffle shuffled shuffle-buffer', '--shuffle-window ROWS'],
  [['batch'], 'batch-size minibatch mini-batch bs b'],
  [['data'], 'file files input inputs in train-data training dataset path csv src source test-data d'],
  [['delimiter'], 'sep separator delim'],
  [['label'], 'y label-column label-col target-column target-col class-column response dependent'],
  [['out', 'dir'], 'output o save save-to save-model final-regressor write'],
  [
    ['dir', 'weights'],
    'model-dir state state-dir store-dir checkpoint checkpoints ckpt resume initial-regressor load load-model'
  ],
  [['ignore'], 'exclude drop skip skip-columns drop-columns omit'],
  [['columns'], 'features feature-columns numeric'],
  [['dimension'], 'num-features n-features dim size'],
  [['categorical'], 'categories category cat-features categorical-features factors'],
  [['l2'], 'lambda regularization regularisation reg weight-decay ridge l2-regularization'],
  [['validation', 'data'], 'valid val eval-data test test-file'],
  [['holdout'], 'split test-size val-split validation-split test-split'],
  [['patience'], 'early-stopping early-stop early-terminate'],
  [['limit'], 'rows n nrows max-rows max-examples examples head sample count'],
  [['seed'], 'random-state random-seed rng'],
  [['model'], 'loss loss-function loss-fn objective algorithm algo architecture kind'],
  [['scale'], 'normalize normalise standardize standardise scaler normalized normalization'],
  [['hash-bits'], 'bits bit-precision hash hashing hash-size'],
  [['na'], 'missing na-values null nulls missing-values'],
  [['weight'], 'weights-column sample-weight sample-weights importance'],
  [['backend'], 'gpu cuda device use-gpu'],
  [['workers', 'threads'], 'jobs n-jobs threads cores processes'],
  [['http-token-file'], 'token token-file password auth api-key'],
  [['network-key'], 'key secret psk'],
  [['log-level'], 'verbose v quiet q debug loglevel'],
  [['json'], 'format-json output-format as-json'],
  [['class-names'], 'labels-list classnames label-names'],
  [['average'], 'averaging polyak ema'],
  [['text'], 'ngram ngrams n-gram'],
  [['config'], 'configuration conf settings c']
]

/** Options of `admb train` that peers do without. */
const PEERS_LACK: Readonly<Record<string, string>> = {
  drift: 'a peer always looks for drift',
  strict: 'a peer counts malformed inputs and skips them',
  'skip-limit': 'a peer counts malformed inputs and skips them',
  seed: 'a peer shuffles in a fixed order',
  noise: 'a peer learns the built-in stream without noise',
  labels: 'a peer finds the labels of IDX files beside the images'
}

const COMMANDS: readonly (readonly [meant: string, words: string])[] = [
  ['peer', 'serve server start run join node worker agent daemon up listen connect'],
  ['train', 'fit learn training teach'],
  ['sim', 'simulate simulation simulator experiment'],
  ['eval', 'evaluate evaluation test score validate metrics'],
  ['predict', 'infer inference prediction classify apply'],
  ['generate', 'chat complete sample'],
  ['export', 'save convert dump'],
  ['tune', 'search hyperopt optimize optimise sweep'],
  ['doctor', 'check diagnose health'],
  ['schema', 'infer-schema describe columns'],
  ['keygen', 'key token genkey'],
  ['demo', 'example quickstart try'],
  ['status', 'info ps stats']
]

/** The long name, without dashes, of the option of `known` that a word means; undefined if none is likely. */
export function meantOption(word: string, known: readonly string[]): { name: string; how?: string } | undefined {
  const plain = word
    .replace(/^-+|=.*$/g, '')
    .toLowerCase()
    .replaceAll('_', '-')
  for (const [meant, words, how] of OPTIONS) {
    const name = words.split(' ').includes(plain) && meant.find(one => known.includes(one))
    if (name) return how?.startsWith(`--${name} `) ? { name, how } : { name }
  }
  return undefined
}

/**
 * The error of the parser of options, with what may be meant.
 * @param words of the command line
 */
export async function withSuggestion(
  error: CommanderError,
  program: Command,
  words: readonly string[]
): Promise<Error> {
  const command = commandOf(program, words)
  const given = /'([^']*)'/.exec(error.message)?.[1] ?? ''
  if (error.code === 'commander.unknownOption') return unknownOption(command, given)
  if (error.code === 'commander.unknownCommand') return unknownCommand(command, given)
  if (error.code === 'commander.excessArguments') {
    const [extra] = command.args
    const takesData = command.options.some(({ long }) => long === '--data')
    const advice = takesData ? `give inputs as --data ${extra}` : 'remove it'
    return new UsageError(`admb ${nameOf(command)} takes no argument '${extra}': ${advice}`)
  }
  return error
}

async function unknownOption(command: Command, given: string): Promise<Error> {
  const known = command.options.filter(({ hidden }) => !hidden).flatMap(({ long }) => (long ? [long.slice(2)] : []))
  const plain = given.replace(/^-+|=.*$/g, '')
  const what = `unknown option '${given}'`
  if (known.includes('set')) {
    const { SCENARIO_KEYS } = await import('../../../sim/index.js')
    const key = SCENARIO_KEYS.find(one => one === plain || one === camel(plain)) ?? nearest(camel(plain), SCENARIO_KEYS)
    if (key !== undefined && (!known.includes(plain) || key === plain)) {
      return new UsageError(`${what}: keys of a scenario are set by --set, such as --set ${key}=VALUE`)
    }
  }
  const meant = meantOption(given, known)
  if (meant !== undefined)
    return new UsageError(`${what}: use ${meant.how ?? `--${meant.name}`} (--help lists the options)`)
  const lacks = command.name() === 'peer' ? PEERS_LACK[plain] : undefined
  if (lacks !== undefined) return new UsageError(`${what}: ${lacks}: remove it`)
  const near = nearest(plain, known)
  const hint = near === undefined ? '' : ` (Did you mean --${near}?)`
  return new UsageError(`${what}${hint}: add --help for the options`)
}

function unknownCommand(command: Command, given: string): Error {
  const what = `unknown command '${given}'`
  if (/[./\\]/.test(given) || existsSync(given)) {
    return new UsageError(`${what}: to learn a file, use admb train --data ${given} --label COLUMN`)
  }
  const known = command.commands.map(one => one.name())
  const [meant] = COMMANDS.find(([name, words]) => known.includes(name) && words.split(' ').includes(given)) ?? []
  if (meant !== undefined) return new UsageError(`${what}: use admb ${meant} (admb --help lists the commands)`)
  const near = nearest(given, known)
  const hint = near === undefined ? '' : ` (Did you mean ${near}?)`
  return new UsageError(`${what}${hint}: add --help for the commands`)
}

/** The command that the words name. */
function commandOf(program: Command, words: readonly string[]): Command {
  let command = program
  for (const word of words) command = command.commands.find(one => one.name() === word) ?? command
  return command
}

function nameOf(command: Command): string {
  const { parent } = command
  return parent === null || parent.parent === null ? command.name() : `${nameOf(parent)} ${command.name()}`
}

function camel(word: string): string {
  return word.replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase())
}
