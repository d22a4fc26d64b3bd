"""First words of user turns. The target writes the rest, so these only steer what kinds of text it practises on."""

import random
from collections.abc import Sequence
from pathlib import Path

from explorer.errors import SettingError

_TASKS = (
    "Write a Python function that", "Write a short story about", "Write a poem about", "Write an email to",
    "Write a SQL query that", "Write a JavaScript function", "Write a recipe for", "Write a product description for",
    "Write a bash script that", "Write a C program that", "Write a test for", "Write a speech about",
    "Explain how", "Explain the difference between", "Explain why", "Explain step by step how to",
    "What is", "What are the", "What happens when", "What would happen if", "What is the capital of",
    "How do I", "How does", "How can I", "How many", "How long does it take to",
    "Why do", "Why is", "When was", "Who was", "Where can I", "Which of the following",
    "Summarize the following text:", "Summarize the main ideas of", "Rewrite this sentence", "Correct the grammar:",
    "Translate the following sentence into", "Turn this list into a table:", "Classify the following",
    "Extract the names from", "Give me five ideas for", "Give an example of", "Give me tips on how to",
    "List the steps to", "List three reasons why", "List the advantages and disadvantages of",
    "Compare", "Describe", "Design a", "Plan a", "Create a table that", "Create a lesson plan about",
    "Solve the equation", "Calculate", "If a train", "A farmer has", "A shop sells", "There are", "Tom has",
    "Find the error in this code:", "Fix this function:", "Convert", "Implement a class that", "Refactor",
    "Tell me about", "Tell me a joke about", "Imagine that you are", "You are a", "Pretend to be", "Act as",
    "Can you", "Could you please", "I need help with", "I am writing a", "I want to", "My friend", "Help me",
    "Suggest", "Recommend", "Define", "Name", "Identify", "Analyze", "Discuss", "Outline", "Prove that",
    "Generate a", "Make a list of", "Provide a brief overview of", "Let's", "In the field of", "The following is",
    "Translate from German to English:", "Translate this French sentence into English:", "How do you say in Spanish",
    "Translate into simple English:", "What does this Latin phrase mean:", "Who wrote", "Who invented", "Who won",
    "When did", "Where is", "In which year", "What year", "Which country", "What is the name of the", "Who played",
    "Read the text and answer the question:", "Answer the question using the context:", "Summarize this article:",
    "Write a headline for", "A car travels", "A bakery", "Sarah buys", "In a class of", "Half of the", "If x",
    "A rectangle has", "How much does", "Write a regular expression that", "Write HTML for", "Explain this code:",
    "Write a persuasive essay about", "Compose a blog post about", "Draft a letter to", "Write a dialogue between",
)  # fmt: skip
_SHARE_OPEN = 0.1


def choose_opening(source: random.Random, openings: Sequence[str] = ()) -> str:
    """A random one of these, else of our own; one in ten of ours is empty: what would the target itself ask?"""
    if openings:
        return source.choice(openings)
    return "" if source.random() < _SHARE_OPEN else source.choice(_TASKS)


def read_openings(path: Path) -> tuple[str, ...]:
    """Openings of a text file, a line each; empty lines do not count. Raises SettingError where it holds none."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise SettingError(f"{path} is no readable text ({error}); give openings of user turns, a line each") from error
    found = tuple(line.strip() for line in lines if line.strip())
    if not found:
        raise SettingError(f"{path} is empty; give openings of user turns, a line each")
    return found
