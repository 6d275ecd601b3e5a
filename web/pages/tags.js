// The tags of a step: shown, added and taken away.

import {element, say} from './dom.js';
import {changeJson, explain} from './server.js';

export const tagText = ([name, value]) => (value ? `${name}=${value}` : name);

// Each leads to the list of the steps that have it.
export const tagList = (tags) => Object.entries(tags).map((tag) => element('a', {
  class: 'tag', href: '#/?' + new URLSearchParams({tag: tagText(tag)}), title: 'Steps with this tag',
}, tagText(tag)));

// `changed` is called when the server has done it.
async function change(method, parameters, body, changed) {
  try {
    await changeJson(method, '/api/v1/tags', parameters, body);
    say('');
    await changed();
  } catch (error) {
    say(explain(error));
  }
}

function tagItem(id, tag, changed) {
  const remove = element('button', {type: 'button', title: 'Take this tag away',
                                    'aria-label': `Take the tag ${tag[0]} away`}, '×');
  remove.addEventListener('click', () => change('DELETE', {job: id, name: tag[0]}, undefined, changed));
  return element('span', {class: 'tag'}, tagText(tag), remove);
}

// While a step runs its tags can only be looked at.
export function tagsOf(id, job, changed) {
  const tags = Object.entries(job.tags || {});
  if (job.state === 'running') {
    return tags.length ? element('p', {class: 'tags', 'aria-label': 'Tags'},
                                 ...tagList(job.tags)) : null;
  }
  const input = element('input', {type: 'text', placeholder: 'NAME=VALUE', 'aria-label': 'A tag to add',
                                  maxlength: '321', autocomplete: 'off', spellcheck: 'false'});
  const form = element('form', {}, input, element('button', {type: 'submit'}, 'Add tag'));
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    const [name, ...value] = input.value.trim().split('=');
    if (name) change('PUT', {job: id}, {tags: {[name]: value.join('=')}}, changed);
  });
  return element('div', {class: 'tags', 'aria-label': 'Tags', role: 'group'},
                 ...tags.map((tag) => tagItem(id, tag, changed)), form);
}
