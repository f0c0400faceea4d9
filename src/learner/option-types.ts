/**
 * Types of options at run time, because programs in JavaScript have no others. The functions that programs call check their options
 * once with `checkOptions`; ranges, and what goes together, are checked where the options are used.
 */
import * as z from 'zod'
import { nearest } from '../base/nearest.js'
import { OptionError } from './errors.js'

/** The type of each option. A table that lacks an option does not compile. */
export type OptionTypes<Options> = { readonly [Key in keyof Required<Options>]: z.ZodType }

/** Values that the test accepts. @param expected what messages call them */
function values(expected: string, test: (value: unknown) => boolean): z.ZodType {
  return z.custom(test, { error: expected })
}

export const number = values('a number', value => typeof value === 'number')
export const text = values('a string', isText)
export const flag = values('true or false', value => typeof value === 'boolean')
export const callback = values('a function', value => typeof value === 'function')
export const bytes = values('a Uint8Array', value => value instanceof Uint8Array)
export const list = values('an array', Array.isArray)
export const set = values('a Set', value => value instanceof Set)
export const texts = values('an array of strings', value => Array.isArray(value) && value.every(isText))
export const numbers = values(
  'an array of numbers',
  value => Array.isArray(value) && value.every(item => typeof item === 'number')
)

/** @param example text of a valid value */
export function object(example: string): z.ZodType {
  return values(`an object such as ${example}`, isObject)
}

/** An object with a name: the spec of a rule or an average. */
export function named(name: string): z.ZodType {
  return values(`an object such as { name: '${name}' }`, value => isObject(value) && isText(value.name))
}

export function choice(...choices: readonly string[]): z.ZodType {
  const quoted = choices.map(each => `'${each}'`)
  return values(quoted.join(' or '), value => choices.includes(value as string))
}

export function matching(pattern: RegExp, expected: string): z.ZodType {
  return values(expected, value => isText(value) && pattern.test(value))
}

/** A string, or options. */
export function textOr(type: z.ZodType): z.ZodType {
  return z.any().superRefine((value, context) => {
    if (isText(value)) return
    const issues = type.safeParse(value, { reportInput: true }).error?.issues ?? []
    for (const { path, message, ...issue } of issues) {
      const expected = path.length === 0 && !isObject(value) ? 'a string or an object' : message
      context.addIssue({ ...issue, path, message: expected } as Parameters<typeof context.addIssue>[0])
    }
  })
}

export function either(...types: readonly z.ZodType[]): z.ZodType {
  const expected = types.map(type => type.safeParse(Symbol()).error?.issues[0].message)
  return values(expected.join(' or '), value => types.some(type => type.safeParse(value).success))
}

/** An object of options, none other than these. @param required those without a default */
export function options<Options>(
  types: OptionTypes<Options>,
  required: readonly (keyof Options & string)[] = []
): z.ZodType {
  const shape = Object.entries<z.ZodType>(types).map(([key, type]) => [
    key,
    (required as readonly string[]).includes(key) ? type : type.optional()
  ])
  return z.strictObject(Object.fromEntries(shape), {
    error: ({ code, keys = [] }) => (code === 'unrecognized_keys' ? unknown(keys as string[], types) : 'an object')
  })
}

/**
 * @param what the messages name, such as `the options of train`
 * @throws OptionError naming the first option that is unknown, missing or of another type
 */
export function checkOptions(what: string, type: z.ZodType, value: unknown): void {
  const [issue] = type.safeParse(value, { reportInput: true }).error?.issues ?? []
  if (issue === undefined) return
  const { path, code, message, input } = issue
  const name = path.length === 0 ? what : `${what}: ${path.join('.')}`
  if (code === 'unrecognized_keys') throw new OptionError(`${name}: ${message}`)
  throw new OptionError(`${name} must be ${message}, not ${given(input, message)}`)
}

function unknown([key]: readonly string[], types: object): string {
  const meant = nearest(key, Object.keys(types))
  return `unknown option ${key}; ${meant === undefined ? 'remove it' : `did you mean ${meant}?`}`
}

/** What was given instead. Only values of choices are repeated: others may be secret. */
function given(value: unknown, expected: string): string {
  if (isText(value) && /(^|or )'/.test(expected)) return `'${value}'`
  if (value === null || value === undefined) return String(value)
  if (Array.isArray(value)) return 'an array'
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`
}

function isText(value: unknown): value is string {
  return typeof value === 'string'
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
