/** Reports the bytes of all buffers of this thread's TensorFlow.js engine, a singleton, which has no hooks for this. */
import * as tf from '#tfjs'

/** The internals of the engine that track the allocation and disposal of buffers. */
interface Engine {
  readonly state: {
    readonly numBytes: number
    readonly tensorInfo: { has(id: object): boolean; get(id: object): { readonly bytes: number } | undefined }
  }
  trackTensor(tensor: tf.Tensor, backend: unknown): void
  removeDataId(id: object, backend: unknown): void
}

/** Call it once per thread. @param onChange called with the bytes of each buffer that is allocated, negative when it is freed */
export function watchBuffers(onChange: (bytes: number) => void): void {
  const engine = tf.engine() as unknown as Engine
  const { tensorInfo, numBytes } = engine.state
  const track = engine.trackTensor.bind(engine)
  const remove = engine.removeDataId.bind(engine)
  onChange(numBytes)
  engine.trackTensor = (tensor, backend) => {
    const isNew = !tensorInfo.has(tensor.dataId)
    track(tensor, backend)
    if (isNew) onChange(tensorInfo.get(tensor.dataId)?.bytes ?? 0)
  }
  engine.removeDataId = (id, backend) => {
    const bytes = tensorInfo.get(id)?.bytes ?? 0
    remove(id, backend)
    if (!tensorInfo.has(id)) onChange(-bytes)
  }
}
