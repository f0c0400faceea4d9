/** Parsers of option values. Each returns the value or throws with the expected form. */
import { CommanderError, InvalidArgumentError } from 'commander'
import { type Delimiter, delimiterNames, delimiters, type Format, type From, formatNames } from '../../data/index.js'
import { SCHEDULES, STASH_LOCATIONS } from '../../l2l/executor/types.js'
import type { Execution } from '../../l2l/index.js'
import type { GroupDevice } from '../../l2l/planning/types.js'
import {
  type LayerRule,
  modelNames,
  OptionError,
  Privacy,
  type PrivacyOptions,
  parseTrust,
  type TargetScale,
  type Trust
} from '../../learning/index.js'
import { type ChoiceOption, type NumberOption, type OptionTable, rangeOf } from '../../learning/options.js'
import { PRESETS, presetHelp } from '../../nn/spec/model-spec.js'
import type { LoraOptions } from '../../nn/spec/network-spec.js'
import { ROLES, type Role, type RoleRates } from '../../server/roles.js'
import { type BatchOption, batchRange, type ClassWeights } from '../../task/option-values.js'
import type { TaskOptions } from '../../task/options.js'
import { NAME_PATTERN } from '../../view/names.js'
import type { Parser } from './option.js'

/** A whole number in a range. */
export function whole(least: number, most = Number.MAX_SAFE_INTEGER): (word: string) => number {
  return word => {
    const value = Number(word)
    if (word.trim() !== '' && Number.isSafeInteger(value) && value >= least && value <= most) return value
    const range = most === Number.MAX_SAFE_INTEGER ? `of at least ${least}` : `from ${least} to ${most}`
    throw new InvalidArgumentError(`It must be a whole number ${range}.`)
  }
}

/** A finite number, at least 0 or above 0. */
export function amount(above = false): (word: string) => number {
  return word => {
    const value = Number(word)
    if (word.trim() !== '' && Number.isFinite(value) && (above ? value > 0 : value >= 0)) return value
    throw new InvalidArgumentError(`It must be a number ${above ? 'above' : 'of at least'} 0.`)
  }
}

/** A share, from 0 to 1. */
export function share(word: string): number {
  const value = Number(word)
  if (word.trim() !== '' && value >= 0 && value <= 1) return value
  throw new InvalidArgumentError('It must be a share from 0 to 1, such as 0.05.')
}

/** A share of rows that are held out, as n: every n-th row. */
export function heldOut(word: string): number {
  const value = share(word)
  if (value > 0 && value <= 0.5) return Math.round(1 / value)
  throw new InvalidArgumentError('It must be a share above 0 and up to 0.5, such as 0.1.')
}

/** An option that must not be repeated, because only the last value would count. */
export function once(value: string, previous: string | undefined): string {
  if (previous === undefined) return value
  throw new InvalidArgumentError(`It is given twice (${previous}, ${value}): give one.`)
}

/** A repeatable option. */
export function collect(word: string, previous: readonly string[] | undefined): string[] {
  return [...(previous ?? []), word]
}

/** A time such as `90s`, `15m`, `2h` or `1d`; a number is in seconds. @returns milliseconds */
export function duration(word: string): number {
  const match = /^(\d+(?:\.\d+)?)([smhd]?)$/.exec(word)
  const seconds = Number(match?.[1]) * ({ s: 1, m: 60, h: 3600, d: 86_400 }[match?.[2] || 's'] ?? 1)
  if (match && seconds > 0) return 1000 * seconds
  throw new InvalidArgumentError('It must be a time above 0, such as 90s, 15m, 2h or 1d.')
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

/** Comma-separated names. */
export function list(word: string): string[] {
  return word.split(',').filter(name => name !== '')
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
export const peerSchedule: Completed<Execution & { readonly token?: string }> = completed(schedule.words, word =>
  scheduleWith(word, { token: (file: string) => file })
)

function scheduleWith<const More extends Readonly<Record<string, Parser<unknown>>>>(word: string, more: More) {
  const [name, rest] = split(word)
  const own = { microbatch: whole(1), stash: choice(STASH_LOCATIONS), workers: whole(1, 64), bits: whole(1, 8) }
  const parsers = { ...own, ...more }
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

/** The word before pairs `key=value`, if there is one, and the pairs. */
function split(word: string): readonly [first: string | undefined, pairs: readonly string[]] {
  const [first, ...rest] = word.split(',')
  return first.includes('=') ? [undefined, [first, ...rest]] : [first, rest]
}

type Parsed<Parsers> = { readonly [Key in keyof Parsers]?: Parsers[Key] extends Parser<infer T> ? T : never }

/** The values of pairs `key=value`. */
function keyed<const Parsers extends Readonly<Record<string, Parser<unknown>>>>(
  pairs: readonly string[],
  parsers: Parsers,
  example: string
): Parsed<Parsers> {
  const found: Record<string, unknown> = {}
  for (const pair of pairs) {
    const at = pair.indexOf('=')
    const key = pair.slice(0, Math.max(0, at))
    if (!Object.hasOwn(parsers, key) || Object.hasOwn(found, key))
      throw new InvalidArgumentError(
        `Its keys are ${Object.keys(parsers).join(', ')}, each once, such as ${example}, not '${pair}'.`
      )
    try {
      found[key] = parsers[key](pair.slice(at + 1))
    } catch (error) {
      throw new InvalidArgumentError(`${key}: ${(error as Error).message}`)
    }
  }
  return found as Parsed<Parsers>
}

/** `MEAN:SD` or `none`. */
export function targetScale(word: string): TargetScale | 'none' {
  if (word === 'none') return word
  const [mean, deviation, ...more] = word.split(':').map(part => (part.trim() === '' ? Number.NaN : Number(part)))
  if (Number.isFinite(mean) && deviation > 0 && Number.isFinite(deviation) && more.length === 0) {
    return { mean, deviation }
  }
  throw new InvalidArgumentError('It must be MEAN:SD with SD above 0, such as 190:180, or none.')
}

/** A registry whose entries take options, such as those of update rules and averages. */
type Registry<Name extends string> = Readonly<
  Record<
    Name,
    {
      readonly summary: string
      readonly options: OptionTable<object>
      readonly eightBitState?: string
    }
  >
>

/** A parser of an option's value, with the values that the shell completes. */
export interface Completed<T> {
  (word: string): T
  readonly words: readonly string[]
}

/** Adds the values that the shell completes to a parser. */
export function completed<T>(words: readonly string[], parse: (word: string) => T): Completed<T> {
  return Object.assign(parse, { words })
}

/** Prints the text and ends the command, as `--help` does. */
function endWith(text: string): never {
  process.stdout.write(text)
  throw new CommanderError(0, 'commander.help', '')
}

/** `NAME` or `NAME,key=value,…` with numbers as values, `true` and `false` apart. `help` prints the registry and the note, and ends. */
export function named<Name extends string>(
  kind: string,
  registry: Registry<Name>,
  note = ''
): Completed<{ readonly name: Name } & Record<string, string | number | boolean>> {
  return completed([...Object.keys(registry), 'help'], text => {
    const [name, ...pairs] = text.split(',').map(part => part.trim())
    if (text === 'help') endWith(registryHelp(registry) + note)
    if (!Object.hasOwn(registry, name)) {
      const names = Object.keys(registry).join(', ')
      throw new InvalidArgumentError(`unknown ${kind} '${name}'; expected one of ${names} (or help).`)
    }
    return { ...pairsOf(pairs, `${name},key=value`), name: name as Name }
  })
}

/** One rule, or a rule for each layer of a network: `LAYERS:NAME,key=value,…;…`. */
export function layered<Rule>(
  rule: Completed<Rule>
): Completed<Rule | { readonly name: 'layers'; readonly rules: readonly LayerRule<Rule>[] }> {
  return completed(rule.words, text => {
    if (!/[:;]/.test(text)) return rule(text)
    const rules = text.split(';').map(entry => {
      const at = entry.lastIndexOf(':')
      if (at < 1)
        throw new InvalidArgumentError(`expected LAYERS:NAME,key=value,…;… with a name, a kind or * for LAYERS.`)
      return { layers: entry.slice(0, at).trim(), rule: rule(entry.slice(at + 1).trim()) }
    })
    return { name: 'layers', rules }
  })
}

/** `key=value` with numbers as values, `true` and `false` apart. @param example for the message */
export function pairsOf(pairs: readonly string[], example: string): Record<string, string | number | boolean> {
  const options: Record<string, string | number | boolean> = {}
  for (const pair of pairs) {
    const at = pair.indexOf('=')
    if (at < 1) throw new InvalidArgumentError(`expected options as ${example}, not '${pair}'.`)
    const value = pair.slice(at + 1)
    options[pair.slice(0, at)] = value === 'true' || value === 'false' ? value === 'true' : toNumber(value)
  }
  return options
}

/** Options of rules whose state may have eight bits a number. */
const stateOptions: Readonly<Record<string, ChoiceOption>> = {
  bits: { default: '32', choices: ['8', '32'], help: 'bits of each number of the state' }
}

function registryHelp(registry: Registry<string>): string {
  const entries = Object.entries(registry).map(([name, { summary, options, eightBitState }]) => {
    const all = eightBitState === undefined ? options : { ...options, ...stateOptions }
    const lines = Object.entries(all as Readonly<Record<string, NumberOption | ChoiceOption>>).map(
      ([key, option]) =>
        `    ${key.padEnd(16)} ${option.help}, ${rangeText(option)} (default: ${option.default ?? 'off'})\n`
    )
    return `${name.padEnd(18)} ${summary}\n${lines.join('')}`
  })
  return `${entries.join('\n')}\nGive options as NAME,key=value,…\n`
}

function rangeText(option: NumberOption | ChoiceOption): string {
  return 'choices' in option ? option.choices.join(' or ') : rangeOf(option)
}

function toNumber(text: string): string | number {
  const value = Number(text)
  return text.trim() === '' || Number.isNaN(value) ? text : value
}

/** One of a list of values, which the help lists. */
export function choice<T extends string>(words: readonly T[]): Completed<T> {
  const parse = (word: string) => {
    if (words.includes(word as T)) return word as T
    throw new InvalidArgumentError(`It must be one of ${words.join(', ')}.`)
  }
  return Object.assign(completed(words, parse), { choices: words })
}

/** Bytes: `512`, `64KB`, `256MB`, `2GB`, in powers of 1024. */
export function bytes(word: string): number {
  const match = /^(\d+(?:\.\d+)?)\s*(B|[KMGT]i?B?)?$/i.exec(word)
  const power = match?.[2] === undefined ? 0 : ' KMGT'.indexOf(match[2][0].toUpperCase())
  const value = Math.floor(Number(match?.[1]) * 1024 ** Math.max(0, power))
  if (match && value > 0) return value
  throw new InvalidArgumentError('It must be bytes, such as 256MB.')
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
