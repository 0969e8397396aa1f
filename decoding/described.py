"""What a picture says of the model that it shows."""

from decoding.run import Run
from models import checkpoint as checkpoints


def model_and_step(run: Run, checkpoint: str) -> str:
    """The run and its checkpoint, with the number of updates where the file has it."""
    files = run.checkpoints(checkpoint)
    if len(files) > 1:
        return f"{run.name} · mean of {', '.join(file.stem for file in files)}"
    progress = checkpoints.load(files[0]).get("progress")
    step = progress.get("step") if isinstance(progress, dict) else None
    after = f" (step {step})" if type(step) is int else ""
    return f"{run.name} · checkpoint {checkpoint}{after}"
