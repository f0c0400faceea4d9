/** The encoder of a checkpoint: a folder of BERT without its classifier, so that it is fine-tuned for any task. */
import { copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { openCheckpoint } from '../../../src/nn/weights/checkpoint.js'
import { isFloat, writeSafetensors } from '../../../src/nn/weights/safetensors.js'
import { GlueError } from './tasks.js'

const TOKENIZER_FILES = ['tokenizer.json', 'tokenizer_config.json', 'vocab.txt']
/** What `config.json` says of the task. */
const OF_THE_TASK = ['architectures', 'id2label', 'label2id', 'problem_type', 'admb']

/** @throws GlueError if the checkpoint is not one of BERT; ModelError if it cannot be read */
export function writeEncoder(checkpoint: string, folder: string): void {
  const { layout, tensors } = openCheckpoint(checkpoint)
  if (layout !== 'bert') throw new GlueError(`${checkpoint} is a model of layout ${layout}, expected a folder of BERT`)
  mkdirSync(folder)
  const config = JSON.parse(readFileSync(join(checkpoint, 'config.json'), 'utf8')) as Record<string, unknown>
  for (const key of OF_THE_TASK) delete config[key]
  writeFileSync(join(folder, 'config.json'), JSON.stringify({ ...config, architectures: ['BertModel'] }))
  for (const name of TOKENIZER_FILES) {
    if (existsSync(join(checkpoint, name))) copyFileSync(join(checkpoint, name), join(folder, name))
  }
  const kept = [...tensors].filter(([name, { dtype }]) => !/^(classifier|cls)\./.test(name) && isFloat(dtype))
  writeSafetensors(
    join(folder, 'model.safetensors'),
    kept.map(([name, { shape, read }]) => ({ name, shape, read }))
  )
}
