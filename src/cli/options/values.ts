/** Parsers of option values. Each returns the value or throws with the expected form. */
import { InvalidArgumentError } from 'commander'
import { type Delimiter, delimiterNames, delimiters, type Format, type From, formatNames } from '../../data/index.js'
import { SCHEDULES, STASH_LOCATIONS } from '../../l2l/executor/types.js'
import type { Execution } from '../../l2l/index.js'
import type { GroupDevice } from '../../l2l/planning/types.js'
import type { ZeroLevel } from '../../l2l/training/partition.js'
import { gradientCode } from '../../l2l/workers/gradient-codes.js'
import {
  modelNames,
  OptionError,
  Privacy,
  type PrivacyOptions,
  parseTrust,
  type TargetScale,
  type Trust
} from '../../learning/index.js'
import { PRESETS, presetHelp } from '../../nn/spec/model-spec.js'
import type { LoraOptions } from '../../nn/spec/network-spec.js'
import { ROLES, type Role, type RoleRates } from '../../server/roles.js'
import { type BatchOption, batchRange, type ClassWeights } from '../../task/option-values.js'
import type { TaskOptions } from '../../task/options.js'
import { NAME_PATTERN } from '../../view/names.js'
import {
  amount,
  bytes,
  type Completed,
  choice,
  completed,
  endWith,
  keyed,
  list,
  pairsOf,
  share,
  split,
  whole
} from './forms.js'
import type { Parser } from './option.js'

export * from './forms.js'

/** A share of rows that are held out, as n: every n-th row. */
export function heldOut(word: string): number {
  const value = share(word)
  if (value > 0 && value <= 0.5) return Math.round(1 / value)
  throw new InvalidArgumentError('It must be a share above 0 and up to 0.5, such as 0.1.')
}

/** Where a stream begins. */
export function startAt(word: string): From {
  if (word === 'start' || word === 'now' || word === 'stored') return word
  if (/^\d+$/.test(word) && Number.isSafeInteger(Number(word))) return Number(word)
  throw new InvalidArgumentError('It must be start, now, stored, or an offset in bytes.')
}

/** Differential privacy: `KEY=NUMBER`, separated by commas. */
export function privacy(word: string): PrivacyOptions {
  const pairs = word.split(',').map(pair => pair.split('='))
  const isMalformed = pairs.some(([key, value = '', ...more]) => key === '' || value.trim() === '' || more.length > 0)
  if (isMalformed || new Set(pairs.map(([key]) => key)).size < pairs.length) {
    throw new InvalidArgumentError('It must be epsilon=…,delta=…,clip=…, such as epsilon=2,delta=1e-6,clip=1.')
  }
  const options = Object.fromEntries(pairs.map(([key, value]) => [key, Number(value)])) as unknown as PrivacyOptions
  try {
    return new Privacy(options).options
  } catch (error) {
    if (error instanceof OptionError) throw new InvalidArgumentError(error.message)
    throw error
  }
}

/** What members are trusted with. */
export function trust(word: string): Trust {
  try {
    return parseTrust(word)
  } catch (error) {
    throw new InvalidArgumentError((error as Error).message)
  }
}

/** A peer's name on the page. */
export function peerName(word: string): string {
  if (NAME_PATTERN.test(word)) return word
  throw new InvalidArgumentError('It must have 1 to 40 printable characters.')
}

/** A separator of CSV, by its character or its name. */
export function delimiter(word: string): Delimiter {
  const names: Readonly<Record<string, string | undefined>> = { ...delimiterNames, '\\t': '\t' }
  const found = names[word] ?? word
  if (Object.hasOwn(delimiters, found)) return found as Delimiter
  throw new InvalidArgumentError('It must be comma, semicolon, tab or pipe.')
}

/** A decimal mark. */
export function decimal(word: string): '.' | ',' {
  if (word === '.' || word === ',') return word
  throw new InvalidArgumentError('It must be one of ., or a comma.')
}

/** `balanced`, `CLASS=WEIGHT,…`, or a file. */
export function classWeights(word: string): ClassWeights | string {
  if (word === 'balanced' || /\.(ya?ml|json)$/i.test(word)) return word
  const pairs = list(word).map(pair => [pair.slice(0, pair.lastIndexOf('=')), pair.slice(pair.lastIndexOf('=') + 1)])
  const weights = pairs.map(([name, weight]) => [name, weight.trim() === '' ? Number.NaN : Number(weight)] as const)
  if (pairs.length > 0 && weights.every(([name, weight]) => name !== '' && weight > 0 && Number.isFinite(weight))) {
    return Object.fromEntries(weights)
  }
  throw new InvalidArgumentError('It must be balanced, CLASS=WEIGHT,… with weights above 0, or a YAML file.')
}

/** `A:B,C:D`, pairs of columns, or `all`. */
export function pairs(word: string): 'all' | readonly (readonly [string, string])[] {
  if (word === 'all') return word
  return list(word).map(text => {
    const names = text.split(':')
    if (names.length === 2 && names.every(name => name !== '')) return names as [string, string]
    throw new InvalidArgumentError('It must be all, or pairs of columns or namespaces, A:B,C:D.')
  })
}

/** `I/N`, the I-th of N shards, 1-based. */
export function shard(word: string): { readonly index: number; readonly count: number } {
  const match = /^(\d+)\/(\d+)$/.exec(word)
  const index = Number(match?.[1])
  const count = Number(match?.[2])
  if (match && index >= 1 && index <= count) return { index: index - 1, count }
  throw new InvalidArgumentError('It must be I/N with I from 1 to N, such as 2/5.')
}

/** A number, `MIN..MAX` or `auto`. */
export function batchSize(word: string): BatchOption {
  const batch = (Number.isNaN(Number(word)) ? word : Number(word)) as BatchOption
  try {
    batchRange(batch)
  } catch {
    throw new InvalidArgumentError('It must be a whole number of at least 1, MIN..MAX, such as 32..4096, or auto.')
  }
  return batch
}

/** T in milliseconds or `auto`, and S in periods. */
export function period(word: string): { readonly period?: number | 'auto'; readonly carry?: number } {
  const [first, rest] = split(word)
  const { carry } = keyed(rest, { carry: whole(0, 100_000) }, '100,carry=16')
  return { period: first === undefined ? undefined : first === 'auto' ? first : whole(1)(first), carry }
}

/** H, μ, and the bytes of own sums a weight and update. */
export function localSteps(word: string): Pick<TaskOptions, 'localSteps' | 'localMomentum' | 'sumBytes'> {
  const [first = '', rest] = split(word)
  const { momentum, bytes } = keyed(rest, { momentum: amount(), bytes: amount(true) }, '30,momentum=0.5,bytes=0.03')
  return { localSteps: whole(2)(first), localMomentum: momentum, sumBytes: bytes }
}

/** The kind of the program that learns, and the path of the socket where it joins. */
export const learner: Completed<{ readonly socket?: string }> = completed(['external'], word => {
  const [name = '', rest] = split(word)
  choice(['external'] as const)(name)
  return keyed(rest, { socket: (path: string) => path }, 'external,socket=peer.sock')
})

/** Addresses of STUN servers; none of `true`, as the option has without a value. */
export function stun(word: string): string[] {
  return word === 'true' ? [] : list(word)
}

/** A file, and whether peers may invite others. */
export function allow(word: string): { readonly file: string; readonly invited: boolean } {
  const invited = word.endsWith(',invited')
  return { file: invited ? word.slice(0, -',invited'.length) : word, invited }
}

/** Where HTTP is served, how, and for whom. */
export interface HttpFlags {
  readonly address?: string
  readonly cert?: string
  /** @default the file of the certificate */
  readonly key?: string
  /** Separated by `|`. */
  readonly origin?: readonly string[]
  /** MiB. */
  readonly body?: number
  /** Requests a second. */
  readonly rate?: number | RoleRates
}

/** `[HOST:]PORT` or `off`, and pairs; requests a second are those of each role, or `rate` of all. A repeated option adds to the first. */
export function http(word: string, previous: HttpFlags = {}): HttpFlags {
  const [address, rest] = split(word)
  const roles = Object.fromEntries(Object.keys(ROLES).map(role => [role, whole(1)])) as Record<Role, Parser<number>>
  const file = (path: string) => path
  const parsers = {
    cert: file,
    key: file,
    origin: (urls: string) => urls.split('|'),
    body: amount(true),
    rate: whole(1)
  }
  const found = keyed(rest, { ...parsers, ...roles }, '7280,cert=FILE,key=FILE,body=8,rate=1000')
  const { cert, key, origin, body, rate, ...rates } = found
  const isByRole = Object.values(rates).some(one => one !== undefined)
  if (isByRole && rate !== undefined)
    throw new InvalidArgumentError(`Give rate of all, or of roles: ${Object.keys(ROLES).join(', ')}.`)
  if (key !== undefined && (cert ?? previous.cert) === undefined)
    throw new InvalidArgumentError('key is without its certificate: give cert=FILE as well.')
  const own = { address, cert, key, origin, body, rate: isByRole ? rates : rate }
  return { ...previous, ...Object.fromEntries(Object.entries(own).filter(([, value]) => value !== undefined)) }
}

/** A number of features, and whether there is one more that is always 1. */
export function dimension(word: string): { readonly features?: number; readonly constant?: false } {
  const [first = '', rest] = split(word)
  const { constant } = keyed(rest, { constant: choice(['yes', 'no'] as const) }, '4,constant=no')
  return { features: whole(1)(first), ...(constant === 'no' && { constant: false }) }
}

/** A schedule, and how it executes. */
export const schedule: Completed<Execution> = completed([...SCHEDULES, 'auto'], word => scheduleWith(word, {}))

/** A schedule, and the token file of devices that a peer admits. */
export const peerSchedule: Completed<Execution & { readonly token?: string }> = completed(schedule.words, word => {
  const zero = () => {
    throw new InvalidArgumentError('peers exchange whole predictors, so each holds one: use zero with admb train.')
  }
  return scheduleWith(word, { token: (file: string) => file, zero })
})

/** Hosts among which a network is divided. */
export interface PartitionFlags {
  readonly zero?: ZeroLevel
  /** With this one. */
  readonly hosts?: number
  readonly token?: string
  /** Where they join. */
  readonly port?: number
}

/** A schedule, and hosts among which the network is divided. */
export const partitionedSchedule: Completed<Execution & PartitionFlags> = completed(schedule.words, word => {
  const file = (path: string) => path
  const level = (text: string) => whole(1, 3)(text) as ZeroLevel
  const more = { zero: level, hosts: whole(2, 64), token: file, port: whole(0, 65_535) }
  const found = scheduleWith(word, more)
  const given = [found.zero, found.hosts, found.token].filter(value => value !== undefined).length
  if (given % 3 !== 0 || (given === 0 && found.port !== undefined))
    throw new InvalidArgumentError('A partition needs zero=1, 2 or 3, hosts=N and token=FILE together.')
  return found
})

function scheduleWith<const More extends Readonly<Record<string, Parser<unknown>>>>(word: string, more: More) {
  const [name, rest] = split(word)
  const own = { microbatch: whole(1), stash: choice(STASH_LOCATIONS), workers: whole(1, 64), bits: whole(1, 8) }
  const parsers = { ...own, gradients: gradientCode, ...more }
  const how = keyed(rest, parsers, 'l2l-p,microbatch=16')
  return name === undefined ? how : { ...how, schedule: choice([...SCHEDULES, 'auto'] as const)(name) }
}

/** Devices of a group: a number of equal ones, or the speed of each, with that of its line. */
export function devices(word: string): number | readonly GroupDevice[] {
  const parts = word.split(',')
  if (parts.length === 1 && /^\d+$/.test(word)) return whole(1, 64)(word)
  return parts.map(part => {
    const [speed, line] = part.split('@')
    const lineBytesPerMs = line === undefined ? undefined : bytes(line) / 1000
    return { speed: amount(true)(speed), lineBytesPerMs }
  })
}

/** A number of classes, the largest one, or both. */
export function classes(word: string): { readonly classes?: number; readonly classesMax?: number } {
  const [known, most, ...more] = word.split('..')
  try {
    if (more.length > 0 || (known === '' && most === undefined)) throw new InvalidArgumentError('')
    return {
      classes: known === '' ? undefined : whole(2)(known),
      classesMax: most === undefined ? most : whole(2)(most)
    }
  } catch {
    throw new InvalidArgumentError('It must be N, N..MAX or ..MAX with whole numbers of at least 2, such as 3..10.')
  }
}

/** How a file is written, by the names of the options of other commands. */
export interface Dialect {
  readonly format?: Format
  readonly delimiter?: Delimiter
  readonly encoding?: string
  readonly decimal?: '.' | ','
  readonly header?: boolean
  readonly na?: readonly string[]
}

/** `NAME`, `NAME,key=value,…` or `key=value,…`. */
export const format: Completed<Dialect> = completed(formatNames, word => {
  const [name, rest] = split(word)
  const parsers = {
    delimiter,
    encoding: (text: string) => text,
    decimal: (text: string) => decimal(text === 'comma' ? ',' : text === 'point' ? '.' : text),
    header: (text: string) => choice(['yes', 'no'] as const)(text) === 'yes',
    na: (text: string) => text.split('|')
  }
  const dialect = keyed(rest, parsers, 'csv,delimiter=semicolon,decimal=comma,encoding=latin1,header=no,na=?|NA')
  return name === undefined ? dialect : { ...dialect, format: choice(formatNames)(name) }
})

/** `MEAN:SD` or `none`. */
export function targetScale(word: string): TargetScale | 'none' {
  if (word === 'none') return word
  const [mean, deviation, ...more] = word.split(':').map(part => (part.trim() === '' ? Number.NaN : Number(part)))
  if (Number.isFinite(mean) && deviation > 0 && Number.isFinite(deviation) && more.length === 0) {
    return { mean, deviation }
  }
  throw new InvalidArgumentError('It must be MEAN:SD with SD above 0, such as 190:180, or none.')
}

const LINEAR_HELP: Readonly<Record<(typeof modelNames)[number], string>> = {
  logistic: 'two classes, logistic loss',
  hinge: 'two classes, smooth hinge loss',
  linear: 'a number, squared loss',
  softmax: 'several classes, cross entropy'
}

/** A linear model, a preset network, or a YAML or JSON file that describes one. */
export const model: Completed<string> = completed([...modelNames, ...PRESETS, 'help'], word => {
  if (word === 'help') endWith(modelHelp())
  const words: readonly string[] = [...modelNames, ...PRESETS]
  if (words.includes(word) || /\.(ya?ml|json)$/i.test(word)) return word
  throw new InvalidArgumentError(`It must be one of ${words.join(', ')}, or a YAML or JSON file (or help).`)
})

function modelHelp(): string {
  const linear = modelNames.map(name => `    ${name.padEnd(12)} ${LINEAR_HELP[name]}\n`).join('')
  return (
    `linear models, without options\n${linear}\n` +
    `networks, with options in a YAML file (such as "model: mlp", then "hidden: [64]")\n\n${presetHelp()}\n` +
    'layers\n    a list of layers in a YAML file: docs/reference/models.md\n'
  )
}

/** Unknown keys and values are refused by the task. */
export function lora(word: string): LoraOptions {
  return pairsOf(word.split(','), 'rank=8,layers=attention')
}

export function rolesHelp(): string {
  const grants = Object.entries(ROLES).map(([role, grant]) => `${role} (${grant})`)
  return `what it is for: ${grants.join('; ')}`
}
