/** Encodes a program's inputs as JSON lines, so that they pass the same parser and checks as all other inputs. */
import { RequestError } from '../peer/index.js'

/** Numbers from feature 0 on, or values by feature number or name. With hashing, a text is a category. */
export type Features = ArrayLike<number> | Readonly<Record<string, number | string | boolean>>
/** A class number, a class name, or the number to predict. */
export type Label = number | string

/**
 * @param labels as many as there are inputs; undefined for inputs to predict
 * @throws RequestError for numbers that are not finite, or another number of labels
 */
export function encodeInputs(inputs: readonly Features[], labels: readonly Label[] | undefined): Uint8Array {
  if (labels !== undefined && labels.length !== inputs.length) {
    throw new RequestError(`${inputs.length} inputs came with ${labels.length} labels: give one label for each input`)
  }
  const lines = inputs.map((input, i) => {
    const features = featuresOf(input, i)
    const label = labels?.[i]
    if (typeof label === 'number') checkFinite(label, `the label of input ${i}`)
    return `${JSON.stringify(label === undefined ? { features } : { label, features })}\n`
  })
  return Buffer.from(lines.join(''))
}

function featuresOf(input: Features, i: number): object {
  const isList = Array.isArray(input) || ArrayBuffer.isView(input)
  const features = isList ? Array.from(input as ArrayLike<number>) : input
  if (typeof features !== 'object' || features === null) {
    throw new RequestError(
      `input ${i} is ${String(input)}: give an array of numbers, or an object of values by feature`
    )
  }
  for (const [key, value] of Object.entries(features)) {
    if (isList || typeof value === 'number') checkFinite(value, `feature ${key} of input ${i}`)
  }
  return features
}

/** JSON would encode such a number as null, which means a missing value. */
function checkFinite(value: unknown, what: string): void {
  if (typeof value === 'number' && Number.isFinite(Math.fround(value))) return
  throw new RequestError(`${what} is ${String(value)}: give a finite float32 number`)
}
