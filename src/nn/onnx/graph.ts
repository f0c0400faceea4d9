/**
 * ONNX graphs: the messages of a file that models need (onnx.proto of ONNX 1.12), as one table for `protons-runtime`, which
 * libp2p uses for its own protobuf messages, and a builder that adds one node after another. Values are named; the batch axis
 * has the symbolic size `N`.
 */
import { writer as createWriter, type Writer } from 'protons-runtime'
import type { LayerSpec } from '../spec/layer-kinds.js'
import { type Layer, ModelError, type Sample, sizeOf } from '../types.js'

/** Values of TensorProto.DataType. */
export const FLOAT = 1
export const INT64 = 7
export const STRING = 8
export const DOUBLE = 11

export interface TensorProto {
  readonly dims: readonly number[]
  readonly dataType: number
  readonly name: string
  /** UTF-8, for strings. */
  readonly stringData?: readonly Uint8Array[]
  /** Little-endian numbers. */
  readonly rawData?: Uint8Array
}

export interface AttributeProto {
  readonly name: string
  readonly f?: number
  readonly i?: number
  readonly s?: Uint8Array
  readonly ints?: readonly number[]
  /** AttributeProto.AttributeType: FLOAT 1, INT 2, STRING 3, INTS 7. */
  readonly type: number
}

interface NodeProto {
  readonly input: readonly string[]
  readonly output: readonly string[]
  readonly name: string
  readonly opType: string
  readonly attribute: readonly AttributeProto[]
}

/** An input or output of the graph. Axes are numbers, or the name of a size that varies. */
interface ValueInfoProto {
  readonly name: string
  readonly type: {
    readonly tensorType: {
      readonly elemType: number
      readonly shape: { readonly dim: readonly { readonly dimValue?: number; readonly dimParam?: string }[] }
    }
  }
}

interface GraphProto {
  readonly node: readonly NodeProto[]
  readonly name: string
  readonly initializer: readonly TensorProto[]
  readonly input: readonly ValueInfoProto[]
  readonly output: readonly ValueInfoProto[]
}

export interface ModelProto {
  readonly irVersion: number
  readonly producerName: string
  readonly graph: GraphProto
  readonly opsetImport: readonly { readonly domain: string; readonly version: number }[]
  readonly metadataProps: readonly { readonly key: string; readonly value: string }[]
}

type Kind = 'int' | 'float' | 'string' | 'bytes'
interface Field {
  readonly number: number
  readonly kind: Kind | Fields
  readonly repeated?: true
}
export type Fields = { readonly [name: string]: Field }

const one = (number: number, kind: Field['kind']): Field => ({ number, kind })
const many = (number: number, kind: Field['kind']): Field => ({ number, kind, repeated: true })

const TENSOR: Fields = {
  dims: many(1, 'int'),
  dataType: one(2, 'int'),
  stringData: many(6, 'bytes'),
  name: one(8, 'string'),
  rawData: one(9, 'bytes')
}
const ATTRIBUTE: Fields = {
  name: one(1, 'string'),
  f: one(2, 'float'),
  i: one(3, 'int'),
  s: one(4, 'bytes'),
  ints: many(8, 'int'),
  type: one(20, 'int')
}
const NODE: Fields = {
  input: many(1, 'string'),
  output: many(2, 'string'),
  name: one(3, 'string'),
  opType: one(4, 'string'),
  attribute: many(5, ATTRIBUTE)
}
const DIMENSION: Fields = { dimValue: one(1, 'int'), dimParam: one(2, 'string') }
const TENSOR_TYPE: Fields = { elemType: one(1, 'int'), shape: one(2, { dim: many(1, DIMENSION) }) }
const VALUE_INFO: Fields = { name: one(1, 'string'), type: one(2, { tensorType: one(1, TENSOR_TYPE) }) }
const GRAPH: Fields = {
  node: many(1, NODE),
  name: one(2, 'string'),
  initializer: many(5, TENSOR),
  input: many(11, VALUE_INFO),
  output: many(12, VALUE_INFO)
}
/** The fields of the message in a file. */
export const MODEL: Fields = {
  irVersion: one(1, 'int'),
  producerName: one(2, 'string'),
  graph: one(7, GRAPH),
  opsetImport: many(8, { domain: one(1, 'string'), version: one(2, 'int') }),
  metadataProps: many(14, { key: one(1, 'string'), value: one(2, 'string') })
}

/** Largest protobuf message, in bytes. */
const LIMIT = 2 ** 31 - 1

/** @throws ModelError if the weights do not fit in a protobuf message */
function encodeModel(model: ModelProto): Uint8Array {
  const bytes = model.graph.initializer.reduce((sum, { rawData }) => sum + (rawData?.byteLength ?? 0), 0)
  if (bytes > LIMIT - 2 ** 24) {
    throw new ModelError(`an ONNX file holds at most 2 GB, and the weights are ${bytes} bytes: export safetensors`)
  }
  const writer = createWriter()
  write(model, MODEL, writer)
  return writer.finish()
}

/** Wire types: 0 varint, 2 with a length, 5 four bytes. */
function write(values: object, fields: Fields, writer: Writer): void {
  for (const [name, { number, kind, repeated }] of Object.entries(fields)) {
    const value: unknown = (values as Record<string, unknown>)[name]
    if (value === undefined) continue
    for (const item of repeated ? (value as readonly unknown[]) : [value]) {
      if (kind === 'int') writer.uint32(number * 8).int64(BigInt(item as number))
      else if (kind === 'float') writer.uint32(number * 8 + 5).float(item as number)
      else {
        writer.uint32(number * 8 + 2)
        if (kind === 'string') writer.string(item as string)
        else if (kind === 'bytes') writer.bytes(item as Uint8Array)
        else {
          writer.fork()
          write(item as object, kind, writer)
          writer.ldelim()
        }
      }
    }
  }
}

/** Opset 17 has LayerNormalization, and IR version 8 is that of its release (ONNX 1.12). */
const OPSET = 17
const IR_VERSION = 8

type Attributes = Readonly<Record<string, number | string | readonly number[] | { readonly float: number }>>

/** The weight of a layer with the name, as a value. */
export type WeightOf = (name: string) => string

/** A layer that becomes operators. */
export interface LayerNodes<Spec = LayerSpec> {
  readonly graph: GraphBuilder
  /** Its input. */
  readonly x: string
  readonly spec: Spec
  readonly layer: Layer
  readonly sample: Sample
  readonly weight: WeightOf
  /** Added to the scores of attention with a padding mask. */
  readonly padding: string | undefined
}

/** Sizes of axes; a text is the name of one that varies. */
type Axes = readonly (number | string)[]

export class GraphBuilder {
  readonly #nodes: NodeProto[] = []
  readonly #initializers: TensorProto[] = []
  readonly #inputs: ValueInfoProto[] = []
  readonly #outputs: ValueInfoProto[] = []

  input(name: string, type: number, shape: Axes): string {
    this.#inputs.push(valueInfo(name, type, shape))
    return name
  }

  /** Makes a value an output of the graph, under a name of its own. */
  output(name: string, value: string, type: number, shape: Axes): void {
    this.#add('Identity', [value], [name], {})
    this.#outputs.push(valueInfo(name, type, shape))
  }

  /** @returns name of the (first) output */
  node(opType: string, inputs: readonly string[], attributes: Attributes = {}): string {
    return this.nodes(opType, inputs, 1, attributes)[0]
  }

  nodes(opType: string, inputs: readonly string[], outputs: number, attributes: Attributes = {}): string[] {
    const at = this.#nodes.length
    const names = Array.from({ length: outputs }, (_, k) => `v${at}_${k}`)
    this.#add(opType, inputs, names, attributes)
    return names
  }

  floats(numbers: Float32Array, shape: readonly number[], name?: string): string {
    return this.#initializer(FLOAT, shape, { rawData: bytesOf(numbers) }, name)
  }

  float(number: number): string {
    return this.floats(Float32Array.of(number), [])
  }

  doubles(numbers: readonly number[], shape: readonly number[]): string {
    return this.#initializer(DOUBLE, shape, { rawData: bytesOf(Float64Array.from(numbers)) })
  }

  integers(numbers: readonly number[], shape: readonly number[] = [numbers.length]): string {
    return this.#initializer(INT64, shape, { rawData: bytesOf(BigInt64Array.from(numbers, BigInt)) })
  }

  strings(texts: readonly string[]): string {
    const stringData = texts.map(text => new TextEncoder().encode(text))
    return this.#initializer(STRING, [texts.length], { stringData })
  }

  /** `0` keeps an axis, and −1 is what remains. */
  reshape(x: string, shape: readonly number[]): string {
    return this.node('Reshape', [x, this.integers(shape)])
  }

  /** The file. @throws ModelError if it would be too large */
  finish(name: string, metadata: Readonly<Record<string, string>>): Uint8Array {
    return encodeModel({
      irVersion: IR_VERSION,
      producerName: 'admb',
      graph: {
        node: this.#nodes,
        name,
        initializer: this.#initializers,
        input: this.#inputs,
        output: this.#outputs
      },
      opsetImport: [{ domain: '', version: OPSET }],
      metadataProps: Object.entries(metadata).map(([key, value]) => ({ key, value }))
    })
  }

  #add(opType: string, input: readonly string[], output: readonly string[], attributes: Attributes): void {
    const attribute = Object.entries(attributes).map(([name, value]): AttributeProto => {
      if (typeof value === 'number') return { name, i: value, type: 2 }
      if (typeof value === 'string') return { name, s: new TextEncoder().encode(value), type: 3 }
      return 'float' in value ? { name, f: value.float, type: 1 } : { name, ints: value, type: 7 }
    })
    this.#nodes.push({ input, output, name: `node${this.#nodes.length}`, opType, attribute })
  }

  #initializer(
    dataType: number,
    dims: readonly number[],
    data: Pick<TensorProto, 'rawData' | 'stringData'>,
    name = `c${this.#initializers.length}_${sizeOf(dims)}`
  ): string {
    this.#initializers.push({ dims, dataType, name, ...data })
    return name
  }
}

function valueInfo(name: string, elemType: number, shape: Axes): ValueInfoProto {
  const dim = shape.map(size => (typeof size === 'number' ? { dimValue: size } : { dimParam: size }))
  return { name, type: { tensorType: { elemType, shape: { dim } } } }
}

function bytesOf({ buffer, byteOffset, byteLength }: Float32Array | Float64Array | BigInt64Array): Uint8Array {
  return new Uint8Array(buffer, byteOffset, byteLength)
}
