/** Evaluates ONNX files in double precision, from the definitions of the operators: those that the export uses, and no others. */
import { reader as createReader, type Reader } from 'protons-runtime'
import {
  type AttributeProto,
  DOUBLE,
  type Fields,
  FLOAT,
  INT64,
  MODEL,
  type ModelProto,
  type TensorProto
} from '../../../src/nn/onnx/graph.js'
import { attributesOf, OPERATORS } from './operators.js'
import type { Value } from './values.js'

export function readOnnx(file: Uint8Array): ModelProto {
  const reader = createReader(file)
  return read(reader, reader.len, MODEL) as unknown as ModelProto
}

/** A message; absent repeated fields are empty. `int64Number` would lose the sign of what is written. */
function read(reader: Reader, end: number, fields: Fields): Record<string, unknown> {
  const values: Record<string, unknown> = {}
  for (const [name, { repeated }] of Object.entries(fields)) if (repeated) values[name] = []
  while (reader.pos < end) {
    const tag = reader.uint32()
    const found = Object.entries(fields).find(([, { number }]) => number === tag >>> 3)
    if (found === undefined) {
      reader.skipType(tag & 7)
      continue
    }
    const [name, { kind, repeated }] = found
    const value = readValue(reader, kind)
    if (repeated) (values[name] as unknown[]).push(value)
    else values[name] = value
  }
  return values
}

function readValue(reader: Reader, kind: Fields[string]['kind']): unknown {
  if (kind === 'int') return reader.int64Number()
  if (kind === 'float') return reader.float()
  if (kind === 'string') return reader.string()
  if (kind === 'bytes') return reader.bytes()
  const length = reader.uint32()
  return read(reader, reader.pos + length, kind)
}

/** @returns the outputs by name */
export function evaluate({ graph }: ModelProto, inputs: Readonly<Record<string, Value>>): Record<string, Value> {
  const values = new Map<string, Value>(graph.initializer.map(tensor => [tensor.name, tensorValue(tensor)]))
  for (const { name } of graph.input) {
    if (inputs[name] === undefined) throw new Error(`no input ${name}`)
    values.set(name, inputs[name])
  }
  for (const { opType, input, output, attribute } of graph.node) {
    const operator = OPERATORS[opType]
    if (operator === undefined) throw new Error(`unknown operator ${opType}`)
    const results = operator(
      input.map(name => values.get(name) as Value),
      attributesOf(attribute as readonly AttributeProto[])
    )
    for (const [k, name] of output.entries()) values.set(name, results[k])
  }
  return Object.fromEntries(graph.output.map(({ name }) => [name, values.get(name) as Value]))
}

function tensorValue({ dims, dataType, rawData, stringData = [] }: TensorProto): Value {
  const bytes = Uint8Array.from(rawData ?? []).buffer
  switch (dataType) {
    case FLOAT:
      return { shape: dims, data: [...new Float32Array(bytes)] }
    case DOUBLE:
      return { shape: dims, data: [...new Float64Array(bytes)] }
    case INT64:
      return { shape: dims, data: Array.from(new BigInt64Array(bytes), Number) }
    default:
      return { shape: dims, data: stringData.map(text => new TextDecoder().decode(text)) as unknown as number[] }
  }
}
